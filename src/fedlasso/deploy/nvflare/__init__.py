"""NVIDIA FLARE carries a federation's bytes; only this room imports it."""
