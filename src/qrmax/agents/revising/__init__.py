"""Factored learners that revise their estimates for ever: confidence sets, posterior sampling."""
