"""Fits across a network: plan, run, reconcile, approve. `nvflare` alone knows the engine."""
