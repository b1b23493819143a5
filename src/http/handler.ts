/** How a handler is joined to the record of its route. */
import type { Context, Hono } from "hono";
import type { AppEnv } from "./context.ts";
import type { RouteName } from "../contract/routes/table.ts";

/** The application itself, for routes that send it requests of their own. */
export type Gateway = Pick<Hono<AppEnv>, "fetch">;

/** Answers the requests of one route; its type names the parameters of the path. */
export type Handler<Path extends string = string> = (
  c: Context<AppEnv, Path>,
  gateway: Gateway,
) => Response | Promise<Response>;

type PathOf<Name> = Name extends `${string} ${infer Path}` ? Path : never;

/** A handler per route: the compiler refuses a route without one, and a handler without a route. */
export type Handlers = { readonly [Name in RouteName]: Handler<PathOf<Name>> };
