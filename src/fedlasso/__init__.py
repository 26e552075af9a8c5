"""One sparse regression across sites that cannot share records."""
