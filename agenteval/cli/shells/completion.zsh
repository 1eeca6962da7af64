#compdef agenteval

_agenteval() {
    local -a values shown
    local line
    for line in "${(@f)$(
        env _AGENTEVAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
            _TYPER_COMPLETE_ARGS="${(j: :)words[1,CURRENT]}" ${~words[1]} 2>/dev/null
    )}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    if (( ! $#values )); then
        _files
        return
    fi
    if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
    compadd -d shown -a values
}

if [[ $funcstack[1] == _agenteval ]]; then
    _agenteval "$@"
else
    compdef _agenteval agenteval
fi
