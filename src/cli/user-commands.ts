import { type Command, Option } from "commander";
import { eventId, fileOfPath, serverUrl } from "./arguments.ts";

const USER = "On any server:";
const INSTANCE = "its id or name";
const AGENT = "its id, slug or name";

/** The user's half: works against any server's API (operations.md, Command line). */
export function addUserCommands(program: Command): void {
  const group = (name: string, description: string): Command =>
    program.command(name).description(description).helpGroup(USER);
  const onServer = (command: Command): Command =>
    command
      .addOption(
        new Option("--url <url>", "the server, if not that of the login").env("ROOST_URL").argParser(serverUrl),
      )
      .addOption(new Option("--key <key>", "an API key, if not that of the login").env("ROOST_API_KEY"));
  const asJson = (command: Command): Command => onServer(command).option("--json", "print the API's own records");
  const sure = (command: Command): Command => asJson(command).option("-y, --yes", "do not ask");
  const inInstance = (command: Command): Command => command.argument("<instance>", INSTANCE);
  const ofAgent = (command: Command): Command => inInstance(command).argument("<agent>", AGENT);

  asJson(group("login", "sign in, and keep an API key for the commands below"))
    .option("--email <email>", "instead of being asked for it")
    .option("--invite <code>", "an invite code, to register")
    .action(async (options) => (await import("./user/login.ts")).login(options));

  addInstanceCommands(group("instance", "see and steer instances"));
  addAgentCommands(group("agent", "see and change agents"));

  onServer(ofAgent(group("chat", "talk with an agent"))).action(async (instance, agent, options) =>
    (await import("./user/chat.ts")).chat(instance, agent, options),
  );
  asJson(ofAgent(group("send", "send one message and print the answer")))
    .argument("<text>", "the message")
    .action(async (instance, agent, text, options) =>
      (await import("./user/send.ts")).send(instance, agent, text, options),
    );
  asJson(ofAgent(group("events", "show what happens to an agent, as it happens")))
    .option("--after <id>", "begin behind this event; 0 is the beginning of what is kept", eventId)
    .action(async (instance, agent, options) =>
      (await import("./user/events.ts")).showEvents(instance, agent, options),
    );

  addSkillCommands(group("skill", "see and change what an instance's agents can do"));
  addSecretCommands(group("secret", "give an instance's skills what they need to know"));

  asJson(group("billing", "show the balance, what it was spent on and how long it lasts")).action(async (options) =>
    (await import("./user/billing.ts")).showBilling(options),
  );

  function addInstanceCommands(instance: Command): void {
    asJson(instance.command("list").description("list instances, newest first")).action(async (options) =>
      (await import("./user/instance.ts")).listInstances(options),
    );
    asJson(instance.command("create").description("create an instance; it runs at once").argument("<name>")).action(
      async (name, options) => (await import("./user/instance.ts")).createInstance(name, options),
    );
    asJson(inInstance(instance.command("start").description("start a stopped instance"))).action(
      async (given, options) => (await import("./user/instance.ts")).setRunning(given, "start", options),
    );
    asJson(inInstance(instance.command("stop").description("stop an instance; billing pauses"))).action(
      async (given, options) => (await import("./user/instance.ts")).setRunning(given, "stop", options),
    );
    sure(inInstance(instance.command("delete").description("delete an instance and all that is in it"))).action(
      async (given, options) => (await import("./user/instance.ts")).deleteInstance(given, options),
    );
  }

  function addAgentCommands(agent: Command): void {
    const described = (command: Command): Command =>
      asJson(command)
        .option("--display-name <name>", "how it is called in a conversation")
        .option("--model <model>", "local:<name>, openai:<name>, or default")
        .option("--file <name=path>", "a persona file from here; an empty path takes it away; repeatable", fileOfPath);
    asJson(inInstance(agent.command("list").description("list an instance's agents, oldest first"))).action(
      async (instance, options) => (await import("./user/agent.ts")).listAgents(instance, options),
    );
    described(inInstance(agent.command("create").description("create an agent")).argument("<name>"))
      .option("--slug <slug>", "its short name in addresses")
      .option("--no-defaults", "begin without the default persona files")
      .action(async (instance, name, options) =>
        (await import("./user/agent.ts")).createAgent(instance, name, options),
      );
    described(ofAgent(agent.command("edit").description("change an agent; its next run sees it")))
      .option("--name <name>", "its name")
      .action(async (instance, given, options) =>
        (await import("./user/agent.ts")).editAgent(instance, given, options),
      );
    sure(ofAgent(agent.command("delete").description("delete an agent, its workspace and history"))).action(
      async (instance, given, options) => (await import("./user/agent.ts")).deleteAgent(instance, given, options),
    );
  }

  function addSkillCommands(skill: Command): void {
    const named = (command: Command): Command => asJson(inInstance(command)).argument("<name>", "the skill's name");
    asJson(skill.command("list").description("list what is installed, or without an instance the catalog"))
      .argument("[instance]", INSTANCE)
      .action(async (instance: string | undefined, options) => {
        const { listCatalog, listInstalled } = await import("./user/skill.ts");
        await (instance === undefined ? listCatalog(options) : listInstalled(instance, options));
      });
    named(skill.command("install").description("install a skill of the catalog")).action(
      async (instance, name, options) => (await import("./user/skill.ts")).installSkill(instance, name, options),
    );
    named(skill.command("remove").description("remove a skill")).action(async (instance, name, options) =>
      (await import("./user/skill.ts")).removeSkill(instance, name, options),
    );
  }

  function addSecretCommands(secret: Command): void {
    asJson(inInstance(secret.command("set").description("set a secret; its value is asked for, or read from a pipe")))
      .argument("<name>", "such as WEATHER_TOKEN")
      .action(async (instance, name, options) => (await import("./user/secret.ts")).setSecret(instance, name, options));
    asJson(inInstance(secret.command("list").description("list the names of secrets"))).action(
      async (instance, options) => (await import("./user/secret.ts")).listSecrets(instance, options),
    );
    sure(inInstance(secret.command("delete").description("delete a secret")))
      .argument("<name>")
      .action(async (instance, name, options) =>
        (await import("./user/secret.ts")).deleteSecret(instance, name, options),
      );
  }
}
