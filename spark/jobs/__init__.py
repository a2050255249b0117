"""Jobs: they read, call methods, and put the answers together. No figure is worked out here."""
