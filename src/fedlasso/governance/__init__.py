"""What may leave a site, who agreed to it, and the proof of what did."""

from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.consent import Desk
from fedlasso.governance.door import (
    AuditSummary,
    Door,
    Introduce,
    Introduction,
    Open,
    Opened,
    Refusal,
    SummariseAudit,
)
from fedlasso.governance.guard import GuardedSite
from fedlasso.governance.policy import Policy, describe, disclosure_table, read_policy

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
    "describe",
    "disclosure_table",
    "read_policy",
]
