/** The sections of the API's description, in the order of the reference. */
export const TAGS = {
  auth: "Signing in, the account, API keys",
  instances: "Isolated environments, billed while they run",
  agents: "Personas with a workspace of files",
  files: "A workspace's files, one by one",
  conversations: "Threads of messages with one agent",
  messages: "Messages to agents, and their answers",
  runs: "What an agent does to answer one message",
  memory: "What agents remember of their files and conversations",
  schedules: "What agents do by themselves at certain times",
  approvals: "What waits for a person's decision",
  events: "What happens to an agent, while it happens",
  skills: "What agents can be taught",
  "mcp-servers": "Servers of the Model Context Protocol, whose tools agents have",
  secrets: "Credentials that skills use and nobody can read",
  billing: "The balance, what it was spent on, and how to top it up",
  host: "The model of this host",
  models: "The agents as models of an OpenAI-compatible client",
  chat: "OpenAI-compatible chat",
  mcp: "The agents as tools of an MCP client",
} as const;

export type Tag = keyof typeof TAGS;
