"""History in: read, sifted, imported from what others kept, and taken from the internal topic."""
