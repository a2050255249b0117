"""What the operator wants: goal kinds, broker scores, goal files and presets."""
