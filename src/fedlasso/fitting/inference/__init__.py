"""Inference about single columns: discoveries, estimates, intervals and p-values."""
