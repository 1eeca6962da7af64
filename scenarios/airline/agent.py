async def agent(messages, ctx):
    return "Hello"
