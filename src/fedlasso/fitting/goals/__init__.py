"""Goals: what a model can be fitted for. A new one is one file, and an entry here."""

from fedlasso.fitting.goal import GOALS
from fedlasso.fitting.goals.discoveries import Discoveries
from fedlasso.fitting.goals.objective import Objective
from fedlasso.fitting.goals.prediction import Prediction
from fedlasso.fitting.goals.selection import Selection

for _goal in (Prediction(), Selection(), Objective(), Discoveries()):
    GOALS[_goal.name] = _goal
