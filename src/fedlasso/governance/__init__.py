"""What may leave a site, who agreed to it, and the proof of what did."""

from fedlasso.governance.audit import Audit, Desk, Entry
from fedlasso.governance.door import (
    AuditSummary,
    Door,
    GuardedSite,
    Introduce,
    Introduction,
    Open,
    Opened,
    Refusal,
    SummariseAudit,
)
from fedlasso.governance.policy import Policy, read_policy

__all__ = [
    "Audit",
    "AuditSummary",
    "Desk",
    "Door",
    "Entry",
    "GuardedSite",
    "Introduce",
    "Introduction",
    "Open",
    "Opened",
    "Policy",
    "Refusal",
    "SummariseAudit",
    "read_policy",
]
