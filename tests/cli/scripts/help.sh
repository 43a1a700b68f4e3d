# Help and version, asked for: on standard output, exit 0.
run --version -q
run --help
run prune --help
run config -h
run help config get
