/** The gateway's real Worker and objects on a simulated platform, a simulated provider, and the faults of both. */
import { Random } from "../../bench/adversary/random.ts";
import { VirtualClock } from "./clock.ts";
import type { IsolateDeps, GatewayExports } from "./isolate.ts";
import { namespaceOf, type ObjectId } from "./namespace.ts";
import { Network } from "./network.ts";
import { SimulatedObject, socketPair } from "./object.ts";
import {
  COMPLETION_TOKEN_NANO_USD,
  HONEST,
  LIMITED,
  MOODY,
  PROMPT_TOKEN_NANO_USD,
  Upstream,
  type UpstreamDeps,
} from "./upstream.ts";
import { WorkerIsolate, type BROKEN, type ClientRequest, type LEFT, type Reply } from "./worker.ts";

export const ADMIN_KEY = "admin-key-of-the-simulation-which-is-long";

/** The model of one of the upstreams: each has a gate of its own. */
export function modelOf(upstream: number): string {
  return `${upstreamName(upstream)}/m`;
}

/** Whether the provider of an upstream has a limit for each key: every second one. The others refuse at any load. */
export function isLimited(upstream: number): boolean {
  return upstream % 2 === 1;
}

function hostOfUpstream(upstream: number): string {
  return `${isLimited(upstream) ? "limited" : "moody"}-${upstreamName(upstream)}.test`;
}

function upstreamName(index: number): string {
  return index === 0 ? "up" : `up${index}`;
}

/** Where virtual time begins, epoch ms. */
const BEGIN_MS = Date.UTC(2030, 0, 1);
const WORKER_ISOLATES = 3;
const OBJECT_ISOLATES = 3;
/** How long a commit takes, ms: on Cloudflare other machines confirm it. */
const COMMIT_MS_MIN = 2;
const COMMIT_MS_MAX = 18;
const SLOW_COMMIT_MS_MAX = 300;
/** After so long a call has arrived, ms: it waits for its sender's commit and for slow calls that were sent before it. */
const ON_ITS_WAY_MS_MAX = 60_000;
/** Mean times between faults of one kind, ms. */
const WORKER_DEATH_EVERY_MS = 40_000;
const MACHINE_DEATH_EVERY_MS = 60_000;
const RESET_EVERY_MS = 4_000;
const DEPLOY_EVERY_MS = 30 * 60_000;

/** The classes by the binding under which the gateway finds their objects. */
const CLASSES: Readonly<Record<string, string>> = {
  RUN: "RunObject",
  LANE: "LaneObject",
  DIRECTORY: "DirectoryObject",
  BATCH: "BatchObject",
  SHELF: "ShelfObject",
  UPSTREAM: "UpstreamObject",
  GATES: "GateObject",
};

/** What is printed that no fault explains. */
const BUGS =
  /TypeError|RangeError|ReferenceError|SyntaxError|a turn failed|no such run|^Uncaught (?!Error: The object was reset)/;

export type WorldDeps = {
  /** Evaluates the gateway's bundle. */
  gateway: (deps: IsolateDeps) => GatewayExports;
  /** All chance comes from these two. */
  seed: number;
  shard: number;
  hasFaults: boolean;
  /** Upstreams that the gateway is configured with. */
  upstreams: number;
  /** Where all objects have to be; absent = anywhere. */
  jurisdiction?: string | undefined;
  /** How long each call takes at the provider; absent = each another time. */
  takes?: UpstreamDeps["takes"];
  /** Called when a bill has grown. */
  billed: UpstreamDeps["billed"];
  /** An invariant does not hold. */
  violated: (what: string) => void;
};

export class World {
  readonly clock = new VirtualClock(BEGIN_MS);
  readonly network: Network;
  readonly upstream: Upstream;
  readonly random: Random;
  readonly #deps: WorldDeps;
  readonly #objects = new Map<string, SimulatedObject>();
  readonly #bindings: object;
  #workers: WorkerIsolate[] = [];
  #hosts: Host[] = [];
  #hasFaults: boolean;
  #uniqueIds = 0;
  #awakeMs = 0;
  /** Calls to objects so far. */
  objectCalls = 0;
  /** What has happened, by kind. */
  readonly faults = { workerDeaths: 0, machineDeaths: 0, resets: 0, deploys: 0 };

  constructor(deps: WorldDeps) {
    this.#deps = deps;
    this.#hasFaults = deps.hasFaults;
    this.random = this.#chance(1);
    this.network = new Network(this.clock, this.#chance(2), this.#networkRules());
    this.upstream = new Upstream({
      clock: this.clock,
      random: this.#chance(3),
      personality: (host) => (this.#hasFaults ? (host.startsWith("limited-") ? LIMITED : MOODY) : HONEST),
      billed: deps.billed,
      takes: deps.takes,
    });
    this.#bindings = this.#namespaces();
    this.#workers = Array.from({ length: WORKER_ISOLATES }, () => this.#newWorker());
    this.#hosts = Array.from({ length: OBJECT_ISOLATES }, () => this.#newHost());
    if (deps.hasFaults) this.#scheduleFaults();
  }

  /** How long objects were in memory, all together. */
  get awakeMs(): number {
    return this.#awakeMs;
  }

  get objects(): Iterable<[string, SimulatedObject]> {
    return this.#objects;
  }

  /** Sends a request to one of the Worker's isolates. */
  request(request: ClientRequest): Promise<Reply | typeof BROKEN | typeof LEFT> {
    return this.random.pick(this.#workers).request(request);
  }

  /** Whether requests may fail: some still do for a while after the last fault. */
  get mayFail(): boolean {
    return this.#deps.hasFaults;
  }

  /** From now on nothing breaks any more. */
  endFaults(): void {
    this.#hasFaults = false;
    this.network.rules = this.#networkRules();
  }

  /** Drops objects that have nothing left, and for which nothing is on its way. Returns those that store something. */
  sweep(): string[] {
    const stored: string[] = [];
    const arrivedMs = this.clock.nowMs - ON_ITS_WAY_MS_MAX;
    for (const [name, object] of this.#objects) {
      const isLeft = !object.isAwake && (calledMsOf.get(object) ?? 0) < arrivedMs;
      if (isLeft && object.storage.isEmpty && object.storage.alarmMs === null && object.sockets === 0)
        this.#objects.delete(name);
      if (!object.storage.isEmpty) stored.push(name);
    }
    return stored;
  }

  /** The objects of which an instance has been in memory for so long, with the reason. */
  awakeFor(ms: number): string[] {
    return [...this.#objects]
      .filter(([, { awakeSinceMs }]) => awakeSinceMs !== null && awakeSinceMs <= this.clock.nowMs - ms)
      .map(([name, object]) => `${name} (${object.why})`);
  }

  #commitMs(): number {
    const isSlow = this.#hasFaults && this.random.chance(0.01);
    return COMMIT_MS_MIN + this.random.fraction() * (isSlow ? SLOW_COMMIT_MS_MAX : COMMIT_MS_MAX);
  }

  /** Draws of its own for a part of the world. The first shard draws what a world without shards does. */
  #chance(part: number): Random {
    const { seed, shard } = this.#deps;
    return shard === 0 ? new Random(seed, part) : new Random(seed, part, shard);
  }

  #networkRules(): Network["rules"] {
    return this.#hasFaults ? { lostShare: 0.002, slowShare: 0.005 } : { lostShare: 0, slowShare: 0 };
  }

  #namespaces(): object {
    const binding = (name: string): [string, object] => [
      name,
      namespaceOf({
        network: this.network,
        objectOf: (id) => {
          this.objectCalls += 1;
          const { jurisdiction } = this.#deps;
          if (id.jurisdiction !== jurisdiction)
            this.#deps.violated(`${name}/${id.toString()} is outside of its jurisdiction`);
          const object = this.#objectOf(name, id);
          calledMsOf.set(object, this.clock.nowMs);
          return object;
        },
        uniqueDigits: () => (this.#uniqueIds += 1).toString(16).padStart(64, "0"),
        places: new Map(),
      }),
    ];
    return Object.fromEntries(Object.keys(CLASSES).map(binding));
  }

  /** The environment of an isolate. */
  #env(): object {
    const upstreamAt = (index: number): object => ({
      kind: "openai",
      base_url: `https://${hostOfUpstream(index)}/v1`,
      models: ["*"],
      prompt_tokens_per_call: 0,
      timeout_ms: 60_000,
      prices: { "*": { input: PROMPT_TOKEN_NANO_USD / 1_000, output: COMPLETION_TOKEN_NANO_USD / 1_000 } },
    });
    const indexes = Array.from({ length: this.#deps.upstreams }, (_, index) => index);
    const UPSTREAMS = Object.fromEntries(indexes.map((index) => [upstreamName(index), upstreamAt(index)]));
    const { jurisdiction: JURISDICTION } = this.#deps;
    return { ADMIN_KEY, DEFAULT_MODEL: modelOf(0), UPSTREAMS, JURISDICTION, ...this.#bindings };
  }

  #newHost(): Host {
    return { exports: this.#evaluated(null), env: this.#env() };
  }

  #newWorker(): WorkerIsolate {
    const worker: WorkerIsolate = new WorkerIsolate(
      this.#evaluated((activity, promise) => worker.waitUntil(activity, promise)),
      this.#env(),
      this.network,
    );
    return worker;
  }

  #evaluated(waitUntil: IsolateDeps["waitUntil"] | null): GatewayExports {
    return this.#deps.gateway({
      clock: this.clock,
      random: this.random,
      fetch: (from, url, init) => this.upstream.fetch(from, url, init),
      socketPair: () => socketPair(this.network),
      waitUntil: waitUntil ?? ((_activity, promise) => void promise.catch(() => undefined)),
      print: (line) => {
        if (BUGS.test(line)) this.#deps.violated(`the gateway printed: ${line}`);
      },
    });
  }

  #objectOf(binding: string, id: ObjectId): SimulatedObject {
    const name = `${binding}/${id.toString()}`;
    const known = this.#objects.get(name);
    if (known !== undefined) return known;
    const host = this.random.integer(0, OBJECT_ISOLATES - 1);
    const object = new SimulatedObject({
      clock: this.clock,
      network: this.network,
      name,
      id,
      construct: (context) => constructed(this.#hosts[host], CLASSES[binding] ?? "", context),
      commitMs: () => this.#commitMs(),
      firesTwice: () => this.#hasFaults && this.random.chance(0.02),
      broken: (what) => this.#deps.violated(what),
      awake: (ms) => (this.#awakeMs += ms),
    });
    hostOf.set(object, host);
    this.#objects.set(name, object);
    return object;
  }

  #scheduleFaults(): void {
    this.#repeat(WORKER_DEATH_EVERY_MS, () => this.#killWorker());
    this.#repeat(MACHINE_DEATH_EVERY_MS, () => this.#killMachine());
    this.#repeat(RESET_EVERY_MS, () => this.#resetOne());
    this.#repeat(DEPLOY_EVERY_MS, () => this.#deploy());
  }

  /** Repeats a fault at times that cannot be foreseen. */
  #repeat(everyMs: number, fault: () => void): void {
    this.clock.after(-Math.log(1 - this.random.fraction()) * everyMs, () => {
      if (!this.#hasFaults) return;
      fault();
      this.#repeat(everyMs, fault);
    });
  }

  #killWorker(): void {
    const index = this.random.integer(0, WORKER_ISOLATES - 1);
    this.#workers[index]?.kill();
    this.#workers[index] = this.#newWorker();
    this.faults.workerDeaths += 1;
  }

  /** All objects of an isolate end at once. */
  #killMachine(): void {
    const host = this.random.integer(0, OBJECT_ISOLATES - 1);
    for (const object of this.#objects.values()) if (hostOf.get(object) === host) object.reset();
    this.#hosts[host] = this.#newHost();
    this.faults.machineDeaths += 1;
  }

  #resetOne(): void {
    const awake = [...this.#objects.values()].filter((object) => object.isAwake);
    if (awake.length === 0) return;
    this.random.pick(awake).reset();
    this.faults.resets += 1;
  }

  /** New code reaches every object within a minute, and the Worker's new requests at once. */
  #deploy(): void {
    this.#workers = this.#workers.map(() => this.#newWorker());
    for (const object of this.#objects.values())
      this.clock.after(this.random.fraction() * 60_000, () => object.reset());
    this.faults.deploys += 1;
  }
}

/** When an object was called last, ms: a call that is on its way holds the object, which the next one must find. */
const calledMsOf = new WeakMap<SimulatedObject, number>();

/** The isolate that hosts an object. */
const hostOf = new WeakMap<SimulatedObject, number>();

/** An isolate of objects, which share its environment. */
type Host = { exports: GatewayExports; env: object };

function constructed(host: Host | undefined, className: string, context: object): object {
  const found = host?.exports[className];
  if (typeof found !== "function") throw new TypeError("the bundle does not export the class");
  const instance: unknown = Reflect.construct(found, [context, host?.env]);
  if (typeof instance !== "object" || instance === null) throw new TypeError("no instance");
  return instance;
}
