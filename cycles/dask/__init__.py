"""The cluster: connected to once, started when first needed, the only place that submits and waits."""
