// Drives stubs/csharp/Fanout.cs for the conformance test.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Text.Json;
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
            string retryable = e.Retryable ? "true" : "false";
            Write($"\u0015{e.Code}\u001f{e.Status}\u001f{retryable}\u001f{e.Attempts}\u001f{e.ChargedUsd}");
        }
    }

    static async Task Run(string command, string[] args)
    {
        switch (command)
        {
            case "query":
                Write(await Fanout.QueryAsync(args[0], args.ElementAtOrDefault(1)));
                break;
            case "batch":
                (await Fanout.BatchAsync(args)).ForEach(slot => Write(TextOf(slot)));
                break;
            case "batch-model":
                (await Fanout.BatchAsync(args.Skip(1), args[0])).ForEach(slot => Write(TextOf(slot)));
                break;
            case "stream":
                await foreach (Slot slot in Fanout.StreamAsync(args))
                {
                    Write($"{slot.Index}\u001f{TextOf(slot)}");
                }
                break;
            case "json":
                Write((await Fanout.QueryJsonAsync(args[0], Schema)).GetProperty("n").ToString());
                break;
            case "batch-json":
                (await Fanout.BatchAsync(args, new { schema = Schema })).ForEach(slot =>
                    Write(slot.Json?.GetProperty("n").ToString() ?? TextOf(slot))
                );
                break;
            case "message":
                await Message(args[0], args[1]);
                break;
            case "messages":
                (await Fanout.BatchAsync(args.Skip(1), args[0], Must)).ForEach(slot =>
                    Write(slot.Message is JsonElement found ? NameOf(found) : TextOf(slot))
                );
                break;
            case "agent":
                var turns = new { tools = new[] { args[1] }, max_turns = 4 };
                JsonElement agent = await Fanout.MessageAsync(args[2], args[0], turns);
                Write(agent.GetProperty("content").GetString());
                break;
            case "dag":
                var first = new { id = "a", prompt = args[0] };
                var second = new { id = "b", prompt = "{{a.output}} and two" };
                JsonElement graph = await Fanout.DagAsync(new[] { first, second });
                Write(graph.GetProperty("outputs").GetProperty("b").GetString());
                break;
            case "vote":
                JsonElement vote = await Fanout.VoteAsync(args[1], int.Parse(args[0]));
                Write($"{vote.GetProperty("winner").GetString()}\u001f{vote.GetProperty("votes")}");
                break;
            case "budget":
                var usd = (await Fanout.BudgetAsync()).GetProperty("usd");
                Write(usd.GetProperty("remaining").GetDecimal().ToString());
                break;
            case "usage":
                Write((await Fanout.UsageAsync()).GetProperty("llm_calls").ToString());
                break;
            case "final":
                await Fanout.FinalAsync(args[0]);
                Write("ok");
                break;
            case "log":
                await Fanout.LogAsync(args[0], Fields(args[1], args[2]));
                Write("ok");
                break;
            case "tool":
                var result = await Fanout.ToolCallAsync(args[0], Fields(args[1], args[2]));
                Write(result.GetString());
                break;
            case "child":
                await Child(int.Parse(args[0]), args.Skip(1));
                break;
            case "nested":
                await Nested(args[0]);
                break;
            case "children":
                foreach (string answer in await Task.WhenAll(args.Select(QueryInChild)))
                {
                    Write(answer);
                }
                break;
            default:
                throw new ArgumentException("no command " + command);
        }
    }

    static readonly object Schema = new
    {
        type = "object",
        properties = new { n = new { type = "integer" } },
        required = new[] { "n" },
    };

    static readonly object Must = new
    {
        tools = new[]
        {
            new { type = "function", function = new { name = "double", parameters = Schema } },
        },
        include = new[] { "message" },
        @params = new { tool_choice = "required" },
    };

    static async Task Message(string model, string prompt)
    {
        JsonElement asked = await Fanout.MessageAsync(prompt, model, Must);
        string id = asked.GetProperty("tool_calls")[0].GetProperty("id").GetString();
        var messages = new object[]
        {
            new { role = "user", content = prompt },
            asked,
            new { role = "tool", tool_call_id = id, content = "8" },
            new { role = "user", content = "done" },
        };
        JsonElement answer = await Fanout.MessageAsync(messages, model);
        Write($"{NameOf(asked)}\u001f{answer.GetProperty("content").GetString()}");
    }

    static string NameOf(JsonElement message) =>
        message.GetProperty("tool_calls")[0].GetProperty("function").GetProperty("name").GetString();

    static Task Child(int calls, IEnumerable<string> prompts) =>
        Fanout.WithRunAsync(
            new { calls },
            async run =>
            {
                foreach (string prompt in prompts)
                {
                    Write(await Fanout.QueryAsync(prompt));
                }
            }
        );

    static async Task Nested(string prompt)
    {
        await Fanout.WithRunAsync(
            new { calls = 4 },
            async run =>
            {
                Write(await Fanout.QueryAsync(prompt));
                Write(await QueryInChild(prompt));
                Write(await Fanout.QueryAsync(prompt));
            }
        );
        Write(await Fanout.QueryAsync(prompt));
    }

    static Task<string> QueryInChild(string prompt) =>
        Fanout.WithRunAsync(new { calls = 1 }, run => Fanout.QueryAsync(prompt));

    static Dictionary<string, string> Fields(string name, string value) =>
        new Dictionary<string, string> { [name] = value };

    static string TextOf(Slot slot) =>
        slot.Error == null ? slot.Text : "[error] " + slot.Error.Message;

    static void Write(string record)
    {
        byte[] bytes = Encoding.UTF8.GetBytes(record + "\u001e");
        using var output = Console.OpenStandardOutput();
        output.Write(bytes, 0, bytes.Length);
        output.Flush();
    }
}
