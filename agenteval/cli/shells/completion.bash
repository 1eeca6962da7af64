_agenteval_completion() {
    # Readline replaces what stands behind the last sign that breaks words (a colon is one), or behind a quote
    # that is open: of the $plain word that is being written, all but the first $kept signs.
    local line=${COMP_LINE:0:COMP_POINT} quote= plain= kept=0 sign value i
    for ((i = 0; i < ${#line}; i++)); do
        sign=${line:i:1}
        if [[ $sign == '\' && $quote != "'" ]]; then
            i=$((i + 1))
            plain+=${line:i:1}
        elif [[ -n $quote ]]; then
            if [[ $sign == "$quote" ]]; then quote=; else plain+=$sign; fi
        elif [[ $sign == [\'\"] ]]; then
            quote=$sign kept=${#plain}
        elif [[ $sign == [[:blank:]] ]]; then
            plain= kept=0
        else
            plain+=$sign
            if [[ $COMP_WORDBREAKS == *"$sign"* ]]; then kept=${#plain}; fi
        fi
    done
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        if [[ $plain == -*=* ]]; then value=${plain%%=*}=$value; fi
        value=${value:kept}
        if [[ -z $value ]]; then continue; fi
        case $quote in
            "'") value=${value//"'"/"'\\''"} ;;
            '"')
                value=${value//\\/\\\\}
                value=${value//\"/\\\"}
                value=${value//\$/\\\$}
                value=${value//\`/\\\`}
                ;;
            *) printf -v value %q "$value" ;;
        esac
        COMPREPLY+=("$value")
    done < <(
        env _AGENTEVAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
            _TYPER_COMPLETE_ARGS="$line" "${1/#\~/$HOME}" 2>/dev/null
    )
}

complete -o default -F _agenteval_completion agenteval
