make_store s
run inspect s/segments/*.seg
run inspect s/segments/*.seg --records 1
run inspect s/segments/*.seg --records 1 --json
run inspect s/segments/*.seg --quiet
run inspect none.seg
echo "not ours" > foreign.seg
run inspect foreign.seg
