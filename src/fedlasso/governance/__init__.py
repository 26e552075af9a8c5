"""What may leave a site, who agreed to it, and the proof of what did."""

from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.consent import Desk
from fedlasso.governance.door import Door
from fedlasso.governance.guard import GuardedSite
from fedlasso.governance.lifetime import Lifetime
from fedlasso.governance.policy import Policy, read_policy

__all__ = ["Audit", "Desk", "Door", "Entry", "GuardedSite", "Lifetime", "Policy", "read_policy"]
