"""NVIDIA FLARE as the carrier of a federation's bytes; nothing outside this room knows it."""
