"""The array type of this room."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
