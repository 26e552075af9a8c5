"""What may leave a site, who approved it, and the record of what did."""

from fedlasso.governance.audit import Audit as Audit
from fedlasso.governance.audit import Entry as Entry
from fedlasso.governance.consent import Desk as Desk
from fedlasso.governance.door import Door as Door
from fedlasso.governance.guard import GuardedSite as GuardedSite
from fedlasso.governance.lifetime import Lifetime as Lifetime
from fedlasso.governance.policy import Policy as Policy
from fedlasso.governance.policy import read_policy as read_policy
