# Sound is 0, damage is 4, repaired with a loss is 3, sound again is 0.
make_store s
export LMEMO_STORE=s
run verify
run repair
flip_byte s ttt
run verify
run verify --json
run verify --quiet
run inspect s/segments/*.seg --records 0
run repair
run verify
run show
