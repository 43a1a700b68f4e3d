# What makes no sense: words on standard error, nothing on standard output, exit 2.
run
run shwo
run show --knd tokens
run show tokens
run config gt
run config get stor
run prune
run prune --older-than 30
run evict --to 2G
run completions csh
run show --color sometimes
run inspect
run inspect FILE --records many
run explain tokens n:int=three
run explain
run shwo --json
