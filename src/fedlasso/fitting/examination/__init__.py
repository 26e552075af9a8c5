"""Examination: what a card shows beside the model, asked through the federation."""
