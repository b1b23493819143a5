/** What the gateway knows of a route beside its handler. The record is the route's one home: docs/ has its guide. */
import type * as z from "zod";
import { EMPTY_BODY_BYTES_MAX } from "../../limits.ts";

/** The methods of routes. A HEAD request is answered as GET. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

/** A route as guides name it, such as `GET /runs/:id`. */
export type RouteKey = `${Method} /${string}`;

/**
 * Whose credential opens a route. A run's token acts for its run and the runs below it. A viewer's key reads figures. A pull worker's
 * token acts for the one run in the path.
 */
export type Holder = "operator" | "run" | "viewer" | "worker";

/** For clients: the operator may act for each run. */
export const CLIENTS: readonly Holder[] = ["operator", "run"];
/** For the operator alone. */
export const OPERATOR: readonly Holder[] = ["operator"];
/** Figures of all runs. docs/security.md says what each leaves out for viewers. */
export const FIGURES: readonly Holder[] = ["operator", "viewer"];
/** Figures of one run: the same for its clients. */
export const RUN_FIGURES: readonly Holder[] = ["operator", "run", "viewer"];
/** What a pull worker does. */
export const WORKERS: readonly Holder[] = ["operator", "run", "worker"];

/** A JSON schema that is written by hand, where no input is parsed with it. */
export type JsonSchema = {
  type?: "string" | "integer" | "object";
  description?: string;
  format?: string;
  pattern?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  properties?: Record<string, JsonSchema>;
  required?: string[];
};

/** A schema, or what builds it: see `atFirstUse`. */
export type Shown = z.ZodType | (() => z.ZodType);

/** Schemas of a body by media type. */
export type Content = Record<string, { schema: Shown | JsonSchema }>;

export type Parameter = {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: JsonSchema;
};

export type Reply = {
  description: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Content;
};

/** The body that a route reads. A route of POST, PUT or PATCH without it drops what is sent, up to `EMPTY_BODY_BYTES_MAX`. */
export type Body = {
  request: { body: { description?: string; required?: boolean; content: Content } };
  /** Most bytes of the body. */
  bound: number;
};

type NoBody = { request?: { query: () => z.ZodObject }; bound?: undefined };

export type RouteRecord = {
  /** Whose credential it needs; null = none. */
  auth: readonly Holder[] | null;
  summary: string;
  description?: string;
  parameters?: Parameter[];
  /** Replies by status. Every refusal has another status and the form `errors`. */
  replies: Readonly<Record<number, Reply>>;
  /** The form of refusals; absent = that of most routes, null = there are none. */
  errors?: Reply | null;
  /** The page that describes it, by its path in the repository. */
  guide: `${string}.md`;
  /** What a parameter of the path matches, if not every text: a regular expression by parameter. */
  where?: Readonly<Record<string, string>>;
  /**
   * That it changes something although the disk is nearly full: it ends or frees what is stored, delivers what is open, or stores
   * nothing. Other routes that change something are refused then.
   */
  opensNothing?: true;
  /** Its name among the links of `GET /`. */
  link?: string;
} & (Body | NoBody);

/** A record with what its key says. */
export type Route<Name extends RouteKey = RouteKey> = RouteRecord & { name: Name; method: Method; path: string };

/** The routes under one heading of the reference; null = the reference does not list them. */
export type Family<Name extends RouteKey = RouteKey> = { heading: string | null; routes: readonly Route<Name>[] };

/** A family in the order of its records. Its type has the names of its routes, and nothing else of them. */
export function family<Name extends RouteKey>(
  heading: string | null,
  records: Readonly<Record<Name, RouteRecord>>,
): Family<Name> {
  const routes: Route<Name>[] = [];
  for (const name in records) routes.push({ ...records[name], name, ...methodAndPath(name) });
  return { heading, routes };
}

function methodAndPath(name: RouteKey): { method: Method; path: string } {
  const method = METHODS.find((each) => name.startsWith(`${each} `));
  if (method === undefined) throw new Error(`${name} names no method`);
  return { method, path: name.slice(method.length + 1) };
}

/** The path of a route with what its parameters match, as routers read it. */
export function patternOf({ path, where = {} }: Route): string {
  return path.replace(/:(\w+)/g, (parameter, name: string) =>
    where[name] === undefined ? parameter : `${parameter}{${where[name]}}`,
  );
}

/** Whether requests of a route change something, as their method says: clients may send a body with these. */
export function isChange({ method }: Route): boolean {
  return method === "POST" || method === "PUT" || method === "PATCH";
}

/** How many bytes the body of a route may have; null = it takes none. What a route drops is bounded, too. */
export function bodyBytesMax(route: Route): number | null {
  if (route.bound !== undefined) return route.bound;
  return isChange(route) ? EMPTY_BODY_BYTES_MAX : null;
}
