import { Argument, type Command, Option } from "commander";
import { NETWORK_NAMES } from "../chain/networks.ts";
import { DTYPE_NAMES } from "../models/store/dtypes.ts";
import { amount, backupFile, count, durationMs, limit, positiveAmount } from "./arguments.ts";
import { settingsHelp } from "./settings-help.ts";

const OPERATOR = "On this host:";
const MAX_WORKSPACE_BYTES = 2 ** 50;
/** Of the host's models, in a day or month. */
const MAX_TOKENS = 9e12;
const CREDIT = "USDC of credit for each, 0 for none (default: ROOST_INVITE_CREDIT, 10.00)";
const BACKUP_FILE = "its path, or s3://bucket/name";
const EXPIRES = "how long it stays valid: a number with s, m, h or d";

const onData = (command: Command): Command =>
  command.option("--data <folder>", "the folder that holds everything Roost writes");
const listening = (command: Command): Command =>
  command
    .option("--host <address>", "the address to listen on")
    .option("--port <number>", "the port to listen on; 0 picks a free one")
    .addHelpText("after", () => settingsHelp(process.stdout.columns || 80));

/** The server. It is an operator command too. */
export function addServe(program: Command): void {
  const serve = program.command("serve").description("run the server").helpGroup(OPERATOR);
  listening(onData(serve)).action(async (options) => (await import("./operator/serve.ts")).serve(options));
}

/**
 * Operator commands: they work on the data folder, with or without a running server (docs/contract/operations.md,
 * Command line).
 */
export function addOperatorCommands(program: Command): void {
  const onDataJson = (command: Command): Command => onData(command).option("--json", "print JSON");
  const group = (name: string, description: string): Command =>
    program.command(name).description(description).helpGroup(OPERATOR);

  listening(onDataJson(group("config", "show every setting: its value, source and meaning"))).action(async (options) =>
    (await import("./operator/config.ts")).showConfig(options),
  );
  onDataJson(group("doctor", "check everything the server depends on, and how to fix it")).action(async (options) =>
    (await import("./operator/doctor.ts")).runDoctor(options),
  );

  const invite = group("invite", "let people register");
  onDataJson(invite.command("create").description("create an invite code; it is shown only once"))
    .addOption(new Option("--uses <n>", "how many accounts can use it").argParser(count).default(1))
    .addOption(new Option("--credit <amount>", CREDIT).argParser(amount))
    .addOption(new Option("--expires <duration>", EXPIRES).argParser(durationMs).default(durationMs("7d"), "7d"))
    .action(async (options) => (await import("./operator/invite.ts")).createInvite(options));
  onDataJson(invite.command("list").description("list invites, newest first")).action(async (options) =>
    (await import("./operator/invite.ts")).listInvites(options),
  );
  onDataJson(invite.command("revoke").description("revoke an invite").argument("<id>", "its id")).action(
    async (id, options) => (await import("./operator/invite.ts")).revokeInvite(id, options),
  );

  const account = group("account", "show and manage accounts");
  const ofAccount = (name: string, description: string): Command =>
    onDataJson(account.command(name).description(description).argument("<email>", "the account's e-mail address"));
  onDataJson(account.command("list").description("list accounts, oldest first")).action(async (options) =>
    (await import("./operator/account.ts")).listAccounts(options),
  );
  ofAccount("show", "show one account").action(async (email, options) =>
    (await import("./operator/account.ts")).showAccount(email, options),
  );
  ofAccount("credit", "add to an account's balance")
    .argument("<amount>", "in USDC, such as 5.00", positiveAmount)
    .requiredOption("--note <text>", "why; kept in the ledger and the audit log")
    .action(async (email, micros, options) =>
      (await import("./operator/account.ts")).creditAccount(email, micros, options),
    );
  ofAccount("credit-transfer", "credit USDC that has arrived and that no quote asked for")
    .addArgument(new Argument("<network>", "the chain").choices(NETWORK_NAMES))
    .argument("<transaction>", "its hash")
    .requiredOption("--note <text>", "why; kept in the audit log")
    .action(async (email, network, txHash, options) =>
      (await import("./operator/account-transfer.ts")).creditTransfer(email, network, txHash, options),
    );
  ofAccount("debit", "take back credit that was given by mistake")
    .argument("<amount>", "in USDC, such as 5.00", positiveAmount)
    .requiredOption("--note <text>", "why; kept in the ledger and the audit log")
    .action(async (email, micros, options) =>
      (await import("./operator/account-debit.ts")).debitAccount(email, micros, options),
    );
  const limitOption = (name: string, what: string, min = 0, max?: number): Option =>
    new Option(`--${name} <n>`, `${what}; or default, for the host's`).argParser(limit(min, max));
  const tokensOption = (name: string, what: string): Option =>
    new Option(`--${name} <n>`, `${what}; none, for no limit; or default, for the host's`).argParser(
      limit(0, MAX_TOKENS, ["none", "default"]),
    );
  ofAccount("limit", "show an account's limits, after changing those given")
    .addOption(limitOption("instances", "instances at once"))
    .addOption(limitOption("agents", "agents in total"))
    .addOption(limitOption("workspace-bytes", "total size of all workspaces", 0, MAX_WORKSPACE_BYTES))
    .addOption(limitOption("streams", "event streams open at once"))
    .addOption(limitOption("reads", "GETs a second", 1))
    .addOption(limitOption("writes", "other requests a second", 1))
    .addOption(tokensOption("tokens-per-day", "tokens of the host's models in a day"))
    .addOption(tokensOption("tokens-per-month", "tokens of the host's models in a month"))
    .action(async (email, options) => (await import("./operator/account-limit.ts")).limitAccount(email, options));
  ofAccount("suspend", "refuse every request from an account").action(async (email, options) =>
    (await import("./operator/account.ts")).setSuspended(email, true, options),
  );
  ofAccount("resume", "end an account's suspension").action(async (email, options) =>
    (await import("./operator/account.ts")).setSuspended(email, false, options),
  );

  onDataJson(group("outbox", "show mail kept here because no SMTP server is set")).action(async (options) =>
    (await import("./operator/outbox.ts")).showOutbox(options),
  );
  onDataJson(group("audit", "show who did what"))
    .option("--verify", "check instead that no row was changed or removed")
    .action(async (options) => (await import("./operator/audit.ts")).showAudit(options));
  const wallet = group("wallet", "the address that receives USDC");
  onDataJson(wallet.command("show").description("show the address, its networks and where its key is")).action(
    async (options) => (await import("./operator/wallet.ts")).showWallet(options),
  );
  onDataJson(
    wallet.command("export").description("print the private key; asks first, and is recorded in the audit log"),
  ).action(async (options) => (await import("./operator/wallet.ts")).exportWallet(options));
  onDataJson(
    wallet.command("give-up").description("give up open quotes that name an address other than the next start's"),
  ).action(async (options) => (await import("./operator/wallet.ts")).giveUpQuotes(options));
  onDataJson(group("login-link", "create a link that signs somebody in, once, within an hour"))
    .argument("<email>", "whom; a new e-mail address gets an account")
    .action(async (email, options) => (await import("./operator/login-link.ts")).makeLoginLink(email, options));

  addModels(group("models", "add language models that run on this host, list and remove them"), onDataJson);

  // Its other commands are those of users, and added before.
  const memory = program.commands.find((command) => command.name() === "memory") ?? program.command("memory");
  onDataJson(memory.command("rebuild").description("have this host's indexes built anew"))
    .option("--agent <agent>", "the id of an agent; else of all")
    .action(async (options) => (await import("./operator/memory.ts")).rebuildMemory(options));

  const backup = group("backup", "save everything in one file, check it, and bring it back");
  const withPassphrase = (command: Command): Command =>
    command.option("--passphrase-file <file>", "the file whose first line encrypts it");
  withPassphrase(
    onDataJson(backup.command("create").description("save the data folder, with or without a running server")),
  )
    .argument("<file>", BACKUP_FILE, backupFile)
    .option("--include-key", "also save the files with keys and passwords")
    .action(async (file, options) => (await import("./operator/backup.ts")).createBackupFile(file, options));
  withPassphrase(
    onDataJson(backup.command("verify").description("restore a backup into a temporary folder, and check all of it")),
  )
    .argument("<file>", BACKUP_FILE, backupFile)
    .action(async (file, options) => (await import("./operator/backup.ts")).verifyBackupFile(file, options));
  withPassphrase(onDataJson(backup.command("restore").description("restore a backup into a new or empty data folder")))
    .argument("<file>", BACKUP_FILE, backupFile)
    .action(async (file, options) => (await import("./operator/backup.ts")).restoreBackupFile(file, options));
  onDataJson(backup.command("list").description("list the backups in ROOST_BACKUP_TO, newest first")).action(
    async (options) => (await import("./operator/backup.ts")).listBackups(options),
  );
  onDataJson(group("rollback", "go back to the state before the last upgrade; the newer one is kept aside")).action(
    async (options) => (await import("./operator/rollback.ts")).rollBackUpgrade(options),
  );
}

const MODEL_HUB_TEXT = "its name on the hub, such as onnx-community/Qwen2.5-0.5B-Instruct";

function addModels(models: Command, onDataJson: (command: Command) => Command): void {
  const adding = (command: Command): Command =>
    onDataJson(command)
      .option("--name <name>", "what agents call it, after local: (default: the last part, in lower case)")
      .addOption(
        new Option("--dtype <type>", "the form of its weights (default: the first of these)").choices(DTYPE_NAMES),
      );
  onDataJson(models.command("list").description("list the models on this host, embedded and added")).action(
    async (options) => (await import("./operator/models.ts")).listAllModels(options),
  );
  adding(models.command("pull").description("fetch a model from the hub, or go on where that was interrupted"))
    .argument("<repository>", MODEL_HUB_TEXT)
    .action(async (repository, options) => (await import("./operator/models.ts")).pullFromHub(repository, options));
  adding(models.command("import").description("add a model from a folder on this machine"))
    .argument("<folder>", "an ONNX model in Hugging Face layout")
    .action(async (folder, options) => (await import("./operator/models.ts")).importFolder(folder, options));
  onDataJson(models.command("remove").description("remove a model that was added"))
    .argument("<model>", "its name")
    .option("--force", "even if agents use it: their runs then fail")
    .action(async (model, options) => (await import("./operator/models.ts")).removeByName(model, options));
}
