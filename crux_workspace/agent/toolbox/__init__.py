"""The five tools: listDir, readFile, writeFile, editFile, runBash."""
