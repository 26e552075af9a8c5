"""Examination: what a card shows beside the model."""
