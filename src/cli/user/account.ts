import { balanceCents, colours, note, printFields, printJson, say, shortTime } from "../output.ts";
import { type Client, createClient, isRefusal, loginAt, type Records } from "./client.ts";
import { findLogin, openClient, type ServerOptions, serverOf } from "./credentials.ts";
import { readAccount } from "./own-account.ts";

interface Options extends ServerOptions {
  json?: true;
}

/** `roost whoami`: the account's e-mail address, and on standard error the server. */
export async function whoAmI(options: Options): Promise<void> {
  const client = openClient(options);
  const account = await readAccount(client);
  if (options.json) printJson(account);
  else {
    say(account.email);
    note(colours.dim(`on ${client.url}`));
  }
}

/** `roost status`: the server, and when signed in, the account's money and instances. */
export async function showStatus(options: Options): Promise<void> {
  const url = serverOf(options);
  const version = await createClient(url, null).version();
  const isKnown = options.key !== undefined || findLogin(options) !== null;
  const own = isKnown ? await readOwn(openClient(options)) : null;
  if (options.json) {
    printJson({ server: { url, version }, account: null, billing: null, instances: null, ...own });
    return;
  }
  const stranger: Fields = [["Account", `not signed in: ${loginAt(url)}`]];
  printFields([["Server", `${url}, Roost ${version}`], ...(own === null ? stranger : fieldsOf(own))]);
}

type Fields = [name: string, value: string][];

interface Own {
  account: Records["Account"];
  /** Null if the key is limited to one instance. */
  billing: Records["Billing"] | null;
  instances: Records["Instance"][];
}

async function readOwn(client: Client): Promise<Own> {
  const account = await readAccount(client);
  const billing = await client.get("/v1/billing").catch((error) => {
    if (isRefusal(error) && error.code === "forbidden") return null;
    throw error;
  });
  return { account, billing, instances: await Array.fromAsync(client.all("/v1/instances")) };
}

function fieldsOf({ account, billing, instances }: Own): Fields {
  const running = instances.filter(({ status }) => status === "running").length;
  const agents = instances.reduce((sum, { agentCount }) => sum + agentCount, 0);
  const isFree = billing !== null && Number(billing.pricePerHour) === 0;
  const empty = billing?.estimatedEmptyAt ?? null;
  const until = empty === null ? "" : `, empty at ${shortTime(empty)} at the current rate`;
  return [
    ["Account", account.email],
    ...(isFree ? [] : ([["Balance", `${balanceCents(account.balance)} ${account.currency}${until}`]] satisfies Fields)),
    ["Instances", `${instances.length}, ${running} running`],
    ["Agents", String(agents)],
  ];
}
