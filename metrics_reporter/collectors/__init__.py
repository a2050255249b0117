"""Collectors: each reads one source of metrics beside a broker."""
