import { cents, colours, note, printFields, printJson, say, shortTime } from "../output.ts";
import type { BillingRecord } from "./billing.ts";
import { ApiError, type Client, createClient, loginAt } from "./client.ts";
import { findLogin, openClient, type ServerOptions, serverOf } from "./credentials.ts";
import type { InstanceRecord } from "./find.ts";

export interface AccountRecord {
  accountId: string;
  email: string;
  name: string;
  balance: string;
  currency: string;
}

interface Options extends ServerOptions {
  json?: true;
}

/** `roost whoami`: the account's e-mail address, and on standard error the server. */
export async function whoAmI(options: Options): Promise<void> {
  const client = openClient(options);
  const account = await client.call<AccountRecord>("GET", "/v1/auth/me");
  if (options.json) printJson(account);
  else {
    say(account.email);
    note(colours.dim(`on ${client.url}`));
  }
}

/** `roost status`: the server, and when signed in, the account's money and instances. */
export async function showStatus(options: Options): Promise<void> {
  const url = serverOf(options);
  const { version } = await createClient(url, null).call<{ version: string }>("GET", "/healthz");
  const isKnown = options.key !== undefined || findLogin(options) !== null;
  const own = isKnown ? await readOwn(openClient(options)) : null;
  if (options.json) {
    printJson({ server: { url, version }, account: null, billing: null, instances: null, ...own });
    return;
  }
  const revokedTokens: Fields = [["Account", `not signed in: ${loginAt(url)}`]];
  printFields([["Server", `${url}, Roost ${version}`], ...(own === null ? revokedTokens : fieldsOf(own))]);
}

type Fields = [name: string, value: string][];

interface Own {
  account: AccountRecord;
  /** Null if the key is limited to one instance. */
  billing: BillingRecord | null;
  instances: InstanceRecord[];
}

async function readOwn(client: Client): Promise<Own> {
  const account = await client.call<AccountRecord>("GET", "/v1/auth/me");
  const billing = await client.call<BillingRecord>("GET", "/v1/billing").catch((error) => {
    if (error instanceof ApiError && error.code === "forbidden") return null;
    throw error;
  });
  return { account, billing, instances: await client.all<InstanceRecord>("/v1/instances") };
}

function fieldsOf({ account, billing, instances }: Own): Fields {
  const running = instances.filter(({ status }) => status === "running").length;
  const agents = instances.reduce((sum, { agentCount }) => sum + agentCount, 0);
  const isFree = billing !== null && Number(billing.pricePerHour) === 0;
  const empty = billing?.estimatedEmptyAt ?? null;
  const until = empty === null ? "" : `, empty at ${shortTime(empty)} at the current rate`;
  return [
    ["Account", account.email],
    ...(isFree ? [] : ([["Balance", `${cents(account.balance)} ${account.currency}${until}`]] satisfies Fields)),
    ["Instances", `${instances.length}, ${running} running`],
    ["Agents", String(agents)],
  ];
}
