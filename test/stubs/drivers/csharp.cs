// Drives stubs/csharp/Fanout.cs for the conformance test.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading.Tasks;

static class Driver
{
    static async Task Main(string[] args)
    {
        try
        {
            await Run(args[0], args.Skip(1).ToArray());
        }
        catch (FanoutException e)
        {
            Write($"\u0015{e.Code}\u001f{e.Status}\u001f{(e.Retryable ? "true" : "false")}");
        }
    }

    static async Task Run(string command, string[] args)
    {
        switch (command)
        {
            case "query":
                Write(await Fanout.QueryAsync(args[0], args.Length > 1 ? new { model = args[1] } : null));
                break;
            case "batch":
                foreach (Slot slot in await Fanout.BatchAsync(args)) Write(TextOf(slot));
                break;
            case "batch-model":
                var options = new Dictionary<string, object> { ["model"] = args[0] };
                foreach (Slot slot in await Fanout.BatchAsync(args.Skip(1), options)) Write(TextOf(slot));
                break;
            case "stream":
                await foreach (Slot slot in Fanout.StreamAsync(args)) Write($"{slot.Index}\u001f{TextOf(slot)}");
                break;
            case "budget":
                Write((await Fanout.BudgetAsync()).GetProperty("usd").GetProperty("remaining").GetDecimal().ToString());
                break;
            case "usage":
                Write((await Fanout.UsageAsync()).GetProperty("llm_calls").ToString());
                break;
            case "final":
                await Fanout.FinalAsync(args[0]);
                Write("ok");
                break;
            case "log":
                await Fanout.LogAsync(args[0], new Dictionary<string, string> { [args[1]] = args[2] });
                Write("ok");
                break;
            case "tool":
                Write((await Fanout.ToolCallAsync(args[0], new Dictionary<string, string> { [args[1]] = args[2] })).GetString());
                break;
            default:
                throw new ArgumentException("no command " + command);
        }
    }

    static string TextOf(Slot slot) => slot.Error == null ? slot.Text : "[error] " + slot.Error.Message;

    static void Write(string record)
    {
        byte[] bytes = Encoding.UTF8.GetBytes(record + "\u001e");
        using var output = Console.OpenStandardOutput();
        output.Write(bytes, 0, bytes.Length);
        output.Flush();
    }
}
