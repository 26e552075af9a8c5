"""Fits across a network: plan, run, reconcile. Only `nvflare` imports the engine."""
