"""What a cluster runs: one task a module, each killed and resumed at any line. Rules are those of `crawl`."""
