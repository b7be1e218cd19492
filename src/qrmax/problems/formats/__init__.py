"""MDPs as files of model checkers, one module for each format."""
