"""How properties are searched, in all rooms."""

from hypothesis import settings

# New examples every time: one that fails is a defect, and its blob repeats it anywhere.
# A slow machine is no defect, so no example has a deadline.
settings.register_profile("fedlasso", deadline=None, print_blob=True)
settings.load_profile("fedlasso")
