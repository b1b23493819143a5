/** The mock and a gateway in front of it, configured with whatever settings this gateway knows. */
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { startMock, type Mock } from "./mock.ts";
import { PERSONALITIES, SETTING_NAMES, upstreamsOf } from "./personalities.ts";

export type World = { gateway: Gateway; mock: Mock; knows: ReadonlySet<string>; stop(): Promise<void> };

export type StartGateway = typeof startGateway;

/** `attemptsMax` of each upstream; retries multiply bills. */
export async function startWorld(
  seed: number,
  attemptsMax: number,
  start: StartGateway = startGateway,
): Promise<World> {
  const mock = await startMock(seed);
  const knows = new Set<string>();
  for (const setting of SETTING_NAMES) if (await accepts(setting, start)) knows.add(setting);
  const gateway = await before(mock, knows, attemptsMax, start);
  return {
    gateway,
    mock,
    knows,
    stop: async () => {
      await gateway.kill();
      await mock.stop();
    },
  };
}

/** A gateway before the mock. */
export async function before(
  mock: Mock,
  knows: ReadonlySet<string>,
  attemptsMax: number,
  start: StartGateway,
): Promise<Gateway> {
  const upstreams = upstreamsOf(PERSONALITIES, mock.origin, knows);
  for (const upstream of Object.values(upstreams)) upstream["max_attempts"] = attemptsMax;
  return await start({ vars: { UPSTREAMS: upstreams, DEFAULT_MODEL: "plain/m" } });
}

/** Whether a setting of an upstream is known: an unknown one is a configuration error that names it. */
async function accepts(setting: string, start: StartGateway): Promise<boolean> {
  const value = PERSONALITIES.find(({ settings }) => settings?.[setting] !== undefined)?.settings?.[setting];
  const upstream = { kind: "openai", base_url: "http://127.0.0.1:9/v1", [setting]: value };
  const gateway = await start({ vars: { UPSTREAMS: { one: upstream }, DEFAULT_MODEL: "one/m" } });
  try {
    const answer = await gateway.fetch("/runs", { token: gateway.adminKey, json: {} });
    const text = await answer.text();
    if (answer.status === 201) return true;
    if (text.includes(setting)) return false;
    throw new Error(`the gateway answered ${answer.status} to a configuration with ${setting}: ${text.slice(0, 300)}`);
  } finally {
    await gateway.kill();
  }
}
