function __agenteval_complete
    set -l word (commandline -ct)
    set -l found (env _AGENTEVAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) agenteval 2>/dev/null | string match -r '.+')
    if test (count $found) -eq 0
        __fish_complete_path $word
        return
    end
    set -l option (string match -r -- '^--[^=]+=' $word)
    for each in $found
        printf '%s\n' "$option$each"
    end
end

complete --command agenteval --no-files --arguments '(__agenteval_complete)'
