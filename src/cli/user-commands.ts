import { type Command, Option } from "commander";
import { APPROVAL_STATUSES } from "../approvals/status.ts";
import type { InstanceStatus } from "../instances/schema.ts";
import { activeHours, eventId, fileOfPath, heartbeat, profileName, serverUrl, toolPolicy } from "./arguments.ts";
import { addMcpCommands } from "./mcp-commands.ts";
import { addMemoryCommands } from "./memory-commands.ts";
import { addScheduleCommands } from "./schedule-commands.ts";
import { addUsageCommand } from "./usage-command.ts";
import type { ServerOptions } from "./user/credentials.ts";

const USER = "On any server:";
const STATUSES = ["provisioning", "running", "stopping", "stopped", "starting", "error"] as const;
const INSTANCE = "its id or name";
const AGENT = "its id, slug or name";
const CONVERSATION = "its id or title, or default";

/** User commands: they work against any server's API (docs/contract/operations.md, Command line). */
export function addUserCommands(program: Command): void {
  const group = (name: string, description: string): Command =>
    program.command(name).description(description).helpGroup(USER);
  const onLogin = (command: Command): Command =>
    command
      .addOption(new Option("--url <url>", "the server, if not the login's (ROOST_URL)").argParser(serverUrl))
      .addOption(
        new Option("--profile <profile>", "the login, if not the current one (ROOST_PROFILE)").argParser(profileName),
      );
  const withKey = (command: Command): Command =>
    onLogin(command).option("--key <key>", "an API key, if not the login's (ROOST_API_KEY)");
  /** Options not given on the command line come from the environment. */
  const fromEnvironment = (command: Command): Command =>
    command.hook("preAction", async (_command, action) => {
      const { withEnvironment } = await import("./user/credentials.ts");
      const meant = withEnvironment(action.opts<ServerOptions>());
      for (const name of ["url", "profile", "key"] as const) action.setOptionValue(name, meant[name]);
    });
  const onServer = (command: Command): Command => fromEnvironment(withKey(command));
  const asJson = (command: Command): Command => onServer(command).option("--json", "print the API's records as JSON");
  const sure = (command: Command): Command =>
    asJson(command).option("-y, --yes", "do not ask; needed where there is no terminal");
  const inInstance = (command: Command): Command => command.argument("<instance>", INSTANCE);
  const ofAgent = (command: Command): Command => inInstance(command).argument("<agent>", AGENT);

  onLogin(group("login", "sign in, and save an API key for the commands below"))
    .option("--key <key>", "save this API key; - reads it from standard input")
    .option("--json", "print the API's records as JSON")
    .option("--email <email>", "your e-mail address, if you do not want to be asked")
    .option("--invite <code>", "an invite code, to register")
    .action(async (options) => (await import("./user/login.ts")).login(options));

  fromEnvironment(onLogin(group("logout", "end the login on the server, and delete it here")))
    .option("--json", "print JSON")
    .option("--local", "delete it here only; its key stays valid")
    .action(async (options) => (await import("./user/logout.ts")).logout(options));
  asJson(group("whoami", "show which account you are signed in to")).action(async (options) =>
    (await import("./user/account.ts")).whoAmI(options),
  );
  asJson(group("status", "show the server, the account's balance and its instances")).action(async (options) =>
    (await import("./user/account.ts")).showStatus(options),
  );
  fromEnvironment(onLogin(group("open", "open the console in a browser, or print its address")))
    .option("--print", "only print the address")
    .action(async (options) => (await import("./user/open.ts")).openConsole(options));
  addProfileCommands(group("profile", "list and switch saved logins"));

  addInstanceCommands(group("instance", "show and manage instances"));
  addAgentCommands(group("agent", "show and manage agents"));

  onServer(ofAgent(group("chat", "talk with an agent")))
    .option("--conversation <conversation>", `${CONVERSATION}; else the default one`)
    .action(async (instance, agent, options) => (await import("./user/chat.ts")).chat(instance, agent, options));
  addConversationCommands(group("conversation", "list, start, rename, fork and delete an agent's conversations"));
  asJson(ofAgent(group("context", "show what an agent's next prompt would hold, and its tokens")))
    .option("--conversation <conversation>", `${CONVERSATION}; else the default one`)
    .action(async (instance, agent, options) =>
      (await import("./user/context.ts")).showContext(instance, agent, options),
    );
  asJson(ofAgent(group("send", "send one message and print the answer")))
    .argument("<text>", "the message; - reads it from standard input")
    .option("--conversation <conversation>", `${CONVERSATION}; else the default one`)
    .action(async (instance, agent, text, options) =>
      (await import("./user/send.ts")).send(instance, agent, text, options),
    );
  asJson(ofAgent(group("events", "show an agent's events as they happen")))
    .option("--after <id>", "start after this event; 0 starts with the oldest kept", eventId)
    .action(async (instance, agent, options) =>
      (await import("./user/events.ts")).showEvents(instance, agent, options),
    );

  addApprovalCommands(group("approval", "show and decide what agents ask for"));
  addScheduleCommands(group("schedule", "have an agent work at certain times"), (command) => asJson(ofAgent(command)));
  addMemoryCommands(group("memory", "search what an agent remembers, and have it forget"), { ofAgent, sure, asJson });
  addSkillCommands(group("skill", "show and manage the skills of an instance's agents"));
  addMcpCommands(group("mcp", "show and manage MCP servers, whose tools agents use"), { inInstance, sure, asJson });
  addSecretCommands(group("secret", "show and manage the secrets that an instance's skills use"));

  asJson(group("billing", "show the balance, what it was spent on and how long it will last")).action(async (options) =>
    (await import("./user/billing.ts")).showBilling(options),
  );

  addUsageCommand(asJson(group("usage", "show what models used: tokens by day, and by agent, instance or model")));

  function addProfileCommands(profile: Command): void {
    const local = (name: string, description: string): Command =>
      profile.command(name).description(description).option("--json", "print JSON");
    local("list", "list the logins, the current one marked").action(async (options) =>
      (await import("./user/profile.ts")).listProfiles(options),
    );
    local("use", "make a login the current one")
      .argument("<profile>", "its name")
      .action(async (name, options) => (await import("./user/profile.ts")).chooseProfile(name, options));
  }

  function addInstanceCommands(instance: Command): void {
    asJson(instance.command("list").description("list instances, newest first"))
      .addOption(
        new Option("--status <status>", "only those with this status").choices(
          STATUSES satisfies readonly InstanceStatus[],
        ),
      )
      .action(async (options) => (await import("./user/instance.ts")).listInstances(options));
    asJson(
      instance.command("create").description("create an instance and start it").argument("<name>", "its name"),
    ).action(async (name, options) => (await import("./user/instance.ts")).createInstance(name, options));
    asJson(inInstance(instance.command("start").description("start a stopped instance"))).action(
      async (given, options) => (await import("./user/instance.ts")).setRunning(given, "start", options),
    );
    asJson(inInstance(instance.command("stop").description("stop an instance, and its billing"))).action(
      async (given, options) => (await import("./user/instance.ts")).setRunning(given, "stop", options),
    );
    sure(inInstance(instance.command("delete").description("delete an instance and everything in it"))).action(
      async (given, options) => (await import("./user/instance.ts")).deleteInstance(given, options),
    );
  }

  function addAgentCommands(agent: Command): void {
    const described = (command: Command): Command =>
      asJson(command)
        .option("--display-name <name>", "the name shown in conversations")
        .option("--model <model>", "local:<name> or openai:<name>, several with commas, or default")
        .option(
          "--tool <name=policy>",
          "deny, ask, allow, always or default for one of its tools; repeatable",
          toolPolicy,
        )
        .option(
          "--heartbeat <every>",
          "how often it does what HEARTBEAT.md says, such as 30m; off for never",
          heartbeat,
        )
        .option("--active-hours <from-to>", "let the heartbeat rest at other times, such as 08:00-20:00", activeHours)
        .option("--time-zone <zone>", "whose clocks the hours mean, such as Europe/Berlin; else this machine's")
        .option("--file <name=path>", "a local persona file; an empty path removes it; repeatable", fileOfPath);
    asJson(inInstance(agent.command("list").description("list an instance's agents, oldest first"))).action(
      async (instance, options) => (await import("./user/agent.ts")).listAgents(instance, options),
    );
    asJson(ofAgent(agent.command("show").description("show an agent and its files"))).action(
      async (instance, given, options) => (await import("./user/agent.ts")).showAgent(instance, given, options),
    );
    described(inInstance(agent.command("create").description("create an agent")).argument("<name>", "its name"))
      .option("--slug <slug>", "its short name, for URLs and commands")
      .option("--no-defaults", "leave out the default persona files")
      .action(async (instance, name, options) =>
        (await import("./user/agent.ts")).createAgent(instance, name, options),
      );
    described(ofAgent(agent.command("edit").description("change an agent, from its next run on")))
      .option("--name <name>", "a new name")
      .action(async (instance, given, options) =>
        (await import("./user/agent.ts")).editAgent(instance, given, options),
      );
    asJson(ofAgent(agent.command("export").description("save an agent with its files and skills as one file")))
      .option("--history", "with its conversations")
      .option("--output <file>", "where to; - is standard output; by default its slug with .tar.gz")
      .option("--force", "replace the file")
      .action(async (instance, given, options) =>
        (await import("./user/bundle.ts")).exportAgent(instance, given, options),
      );
    asJson(inInstance(agent.command("import").description("create an agent from such a file; nothing of it is run")))
      .argument("<bundle>", "the file, or an OpenClaw workspace's folder")
      .option("--name <name>", "another name, if its own is taken")
      .action(async (instance, from, options) =>
        (await import("./user/bundle.ts")).importAgent(instance, from, options),
      );
    sure(ofAgent(agent.command("delete").description("delete an agent, its workspace and history"))).action(
      async (instance, given, options) => (await import("./user/agent.ts")).deleteAgent(instance, given, options),
    );
  }

  function addConversationCommands(conversation: Command): void {
    const within = (command: Command): Command => ofAgent(command).argument("<conversation>", CONVERSATION);
    asJson(
      ofAgent(conversation.command("list").description("list them, latest activity first, the default one marked")),
    ).action(async (instance, agent, options) =>
      (await import("./user/conversation.ts")).listConversations(instance, agent, options),
    );
    asJson(ofAgent(conversation.command("new").description("start a new one")))
      .option("--title <title>", "what it is about")
      .action(async (instance, agent, options) =>
        (await import("./user/conversation.ts")).newConversation(instance, agent, options),
      );
    asJson(within(conversation.command("rename").description("change the title of one")))
      .requiredOption("--title <title>", "what it is about")
      .action(async (instance, agent, given, options) =>
        (await import("./user/conversation.ts")).renameConversation(instance, agent, given, options),
      );
    asJson(within(conversation.command("fork").description("start one with a copy of another's messages")))
      .option("--message <id>", "the last message to copy; by default, all are copied")
      .action(async (instance, agent, given, options) =>
        (await import("./user/conversation.ts")).forkConversation(instance, agent, given, options),
      );
    sure(within(conversation.command("delete").description("delete one with its messages"))).action(
      async (instance, agent, given, options) =>
        (await import("./user/conversation.ts")).deleteConversation(instance, agent, given, options),
    );
  }

  function addApprovalCommands(approval: Command): void {
    const one = (name: string, description: string): Command =>
      asJson(approval.command(name).description(description)).argument("<approval>", "its id");
    const decision = (command: Command): Command => command.option("--note <text>", "words for the agent");
    asJson(approval.command("list").description("list what waits for a decision, newest first"))
      .addOption(new Option("--status <status>", "those with this status").choices(APPROVAL_STATUSES).default("open"))
      .action(async (options) => (await import("./user/approval.ts")).listApprovals(options));
    one("show", "show all of an approval").action(async (given, options) =>
      (await import("./user/approval.ts")).showApproval(given, options),
    );
    decision(one("approve", "let the agent do exactly what is shown"))
      .option("--remember", "do not ask again for such calls")
      .option("-y, --yes", "do not ask; needed where there is no terminal")
      .action(async (given, options) => (await import("./user/approval.ts")).approve(given, options));
    decision(one("deny", "do not let the agent do it, or leave its questions unanswered")).action(
      async (given, options) => (await import("./user/approval.ts")).deny(given, options),
    );
    decision(one("answer", "answer the agent's questions"))
      .argument("<answers...>", "one for each question")
      .action(async (given, answers, options) => (await import("./user/approval.ts")).answer(given, answers, options));
  }

  function addSkillCommands(skill: Command): void {
    const named = (command: Command): Command => asJson(inInstance(command)).argument("<skill>", "its name");
    asJson(skill.command("list").description("list an instance's skills, or without an instance the catalog"))
      .argument("[instance]", INSTANCE)
      .action(async (instance: string | undefined, options) => {
        const { listCatalog, listInstalled } = await import("./user/skill.ts");
        await (instance === undefined ? listCatalog(options) : listInstalled(instance, options));
      });
    asJson(skill.command("show").description("show a skill of the catalog, with its instructions"))
      .argument("<skill>", "its name")
      .action(async (name, options) => (await import("./user/skill.ts")).showSkill(name, options));
    named(skill.command("install").description("install a skill from the catalog"))
      .option("--from <bundle>", "not from the catalog: its folder, an exported agent's file, or an OpenClaw folder")
      .action(async (instance, name, options) =>
        (await import("./user/skill.ts")).installSkill(instance, name, options),
      );
    named(skill.command("remove").description("remove a skill")).action(async (instance, name, options) =>
      (await import("./user/skill.ts")).removeSkill(instance, name, options),
    );
  }

  function addSecretCommands(secret: Command): void {
    asJson(
      inInstance(secret.command("set").description("set a secret; prompts for its value, or reads it from a pipe")),
    )
      .argument("<secret>", "its name, such as WEATHER_TOKEN")
      .action(async (instance, name, options) => (await import("./user/secret.ts")).setSecret(instance, name, options));
    asJson(inInstance(secret.command("list").description("list the names of secrets"))).action(
      async (instance, options) => (await import("./user/secret.ts")).listSecrets(instance, options),
    );
    sure(inInstance(secret.command("delete").description("delete a secret")))
      .argument("<secret>", "its name")
      .action(async (instance, name, options) =>
        (await import("./user/secret.ts")).deleteSecret(instance, name, options),
      );
  }
}
