import typer
app = typer.Typer(name="kernels")
@app.callback()
def _k(): pass
