"""The service beside the active controller; docs/service.md."""
