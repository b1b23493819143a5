/**
 * The gateway, which counts what opening runs takes: `GET /bench/runs` says how often each method of an object was called from elsewhere
 * that has a part in it, and what all objects have written so far. Calls of an object's own methods do not count.
 */
import gateway, { DirectoryObject as Directory, RunObject as Run } from "../../src/index.ts";
import { countWrites, written } from "./writes.ts";

export {
  BatchObject,
  CassetteObject,
  GateObject,
  LaneObject,
  ProviderBatchObject,
  ShelfObject,
  UpstreamObject,
} from "../../src/index.ts";

/** `lease` and `release`: what the parts of the list and the object that all share ask of each other. */
const counts = { open: 0, add: 0, addOfDay: 0, lease: 0, release: 0 };

export class RunObject extends Run {
  constructor(...[context, env]: ConstructorParameters<typeof Run>) {
    countWrites(context.storage.sql);
    super(context, env);
  }

  override open(...args: Parameters<Run["open"]>): ReturnType<Run["open"]> {
    counts.open += 1;
    return super.open(...args);
  }
}

export class DirectoryObject extends Directory {
  constructor(...[context, env]: ConstructorParameters<typeof Directory>) {
    countWrites(context.storage.sql);
    super(context, env);
  }

  override add(...args: Parameters<Directory["add"]>): ReturnType<Directory["add"]> {
    counts.add += 1;
    return super.add(...args);
  }

  override addOfDay(...args: Parameters<Directory["addOfDay"]>): ReturnType<Directory["addOfDay"]> {
    counts.addOfDay += 1;
    return super.addOfDay(...args);
  }

  override lease(...args: Parameters<Directory["lease"]>): ReturnType<Directory["lease"]> {
    counts.lease += 1;
    return super.lease(...args);
  }

  override release(...args: Parameters<Directory["release"]>): ReturnType<Directory["release"]> {
    counts.release += 1;
    return super.release(...args);
  }
}

export default {
  async fetch(...[request, env, context]: Parameters<typeof gateway.fetch>): Promise<Response> {
    if (new URL(request.url).pathname === "/bench/runs")
      return Response.json({ ...counts, commits: written.commits, rows: written.rows });
    return await gateway.fetch(request, env, context);
  },
};
