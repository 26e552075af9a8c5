"""Fits across a network: plan, run, reconcile. Only `nvflare` in here knows the engine."""

# A site reads only messages that it knows: those of every room that asks questions.
import fedlasso.fitting
import fedlasso.procedures
import fedlasso.sites  # noqa: F401
