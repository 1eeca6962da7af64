Register-ArgumentCompleter -Native -CommandName agenteval -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $Env:_AGENTEVAL_COMPLETE = "complete_powershell"
    $Env:_TYPER_COMPLETE_ARGS = $commandAst.ToString()
    $Env:_TYPER_COMPLETE_WORD_TO_COMPLETE = $wordToComplete
    agenteval | ForEach-Object {
        $value, $help = $_ -Split ":::"
        [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
    }
    $Env:_AGENTEVAL_COMPLETE = ""
    $Env:_TYPER_COMPLETE_ARGS = ""
    $Env:_TYPER_COMPLETE_WORD_TO_COMPLETE = ""
}
