"""The same fit over a real network: NVIDIA FLARE carries the questions, nothing else knows it."""
