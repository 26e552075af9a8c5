"""Sentences that a study concludes with, by its name; other studies have tables only."""

from fedlasso.study.family_summary import family_conclusions
from fedlasso.study.real_summary import real_conclusions
from fedlasso.study.trust_summary import trust_conclusions

CONCLUSIONS = {"real": real_conclusions, "families": family_conclusions, "trust": trust_conclusions}
