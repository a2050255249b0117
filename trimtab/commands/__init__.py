"""One module a command. Each has ``register(app)`` and stays thin: parse, call, write."""
