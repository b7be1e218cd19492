"""NMRDPs: tabular MDPs, labelling functions, continuous problems and their simulators."""
