"""Fits across a network: plan, run, reconcile. Only `nvflare` in here knows the engine."""
