/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: what is taken, and for each way to be wrong the cause and where the text points. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/rank_table.h"
#include "tests/support/test.h"

/* ' stands for " */
static char *quoted(const char *text)
{
	static char buffer[8192];
	size_t i;

	for (i = 0; text[i] && i + 1 < sizeof(buffer); i++)
		buffer[i] = text[i] == '\'' ? '"' : text[i];
	buffer[i] = '\0';
	return buffer;
}

static struct hccld_rank_table *parse(const char *text)
{
	struct hccld_rank_table_error error = { 0 };
	struct hccld_rank_table *table = NULL;
	const char *json = quoted(text);
	int r = hccld_rank_table_parse(json, strlen(json), &table, &error);

	check_msg(r == 0, "%s: %s", text, error.text);
	return table;
}

static void refuse_bytes(const char *json, size_t size, enum cause cause, const char *part)
{
	struct hccld_rank_table_error error = { 0 };
	struct hccld_rank_table *table = NULL;

	check_eq_int(hccld_rank_table_parse(json, size, &table, &error), status_error(cause));
	check_eq_int(error.cause, cause);
	check_str_contains(error.text, part);
	check_null(table);
}

static void refuse(const char *text, enum cause cause, const char *part)
{
	const char *json = quoted(text);

	refuse_bytes(json, strlen(json), cause, part);
}

#define HEAD "'status':'completed','version':'1.0',"
#define ONE(devices) "{" HEAD "'server_count':'1','server_list':[{'server_id':'node','device':[" devices "]}]}"
#define DEVICE(id, rank) "{'device_id':'" id "','rank_id':'" rank "'}"

TEST(tables_of_all_versions)
{
	struct hccld_rank_table *a = parse(ONE(DEVICE("3", "1") "," DEVICE("5", "0")));
	struct hccld_rank_table *b = parse(
		"{'rank_count':2,'version':'2.0','rank_list':["
		"{'rank_id':0,'local_id':5,'device_id':5,'level_list':[{'net_layer':0,'net_instance_id':'node','net_type':'TOPO_FILE_DESC',"
		"'rank_addr_list':[{'addr_type':'EID','addr':'x','ports':['0/1'],'plane_id':'0'}]},"
		"{'net_layer':3,'net_instance_id':'c','net_type':'CLOS'}]},"
		"{'rank_id':1,'local_id':3,'device_id':3,'level_list':[{'net_layer':0,'net_instance_id':'node','net_type':'TOPO_FILE_DESC'}]}]}");
	struct hccld_rank_table *c = parse(
		"{'status':'completed','group_count':'1','group_list':[{'group_name':'g','instance_count':'2','device_count':'2','instance_list':["
		"{'pod_name':'p','server_id':'node','devices':[{'device_id':'5','device_ip':'10.0.0.1'}]},"
		"{'pod_name':'q','server_id':'node','devices':[{'device_id':'3'}]}]}]}");
	struct hccld_rank_table *d = parse(
		"{'status':'completed','version':'1.2','server_list':[{'server_id':'node','host_ip':'::1','device':["
		"{'device_id':'5','rank_id':'0','super_device_id':'4194304','backup_device_ip':'10.0.0.9','device_port':'17000','host_port':'18000'},"
		"{'device_id':'3','rank_id':'1','host_port':'18001','hostname':'passed over'}]}],"
		"'super_pod_list':[{'super_pod_id':'0','server_list':[{'server_id':'node'}]}]}");
	struct hccld_rank_table *tables[] = { a, b, c, d };

	for (int i = 0; i < 4; i++) {
		check_eq_uint(tables[i]->rank_count, 2u);
		check_eq_uint(tables[i]->server_count, 1u);
		check_eq_str(tables[i]->servers[0].id, "node");
		check_eq_uint(tables[i]->ranks[0].device, 5u);
		check_eq_uint(tables[i]->ranks[1].device, 3u);
		/* what says the same is the same */
		check_eq_mem(tables[i]->digest, a->digest, DIGEST_BYTES);
	}
	check_eq_str(d->servers[0].host_ip, "::1");
	for (int i = 0; i < 4; i++)
		hccld_rank_table_free(tables[i]);
}

TEST(other_tables_have_other_digests)
{
	struct hccld_rank_table *a = parse(ONE(DEVICE("3", "0")));
	struct hccld_rank_table *b = parse(ONE(DEVICE("4", "0")));

	check(memcmp(a->digest, b->digest, DIGEST_BYTES) != 0);
	hccld_rank_table_free(a);
	hccld_rank_table_free(b);
}

TEST(what_is_no_json)
{
	static char large[1000000];

	refuse("", CAUSE_TABLE_PARSE, "it is empty");
	refuse("{", CAUSE_TABLE_PARSE, "line 1, column 2");
	refuse("{'version':'1.0',\n 'status' 'completed'}", CAUSE_TABLE_PARSE, "line 2, column ");
	refuse("{} x", CAUSE_TABLE_PARSE, "there is more after the end");
	refuse("[]", CAUSE_TABLE_VALUE, "it is no object");
	refuse_bytes("{}\0{}", 5, CAUSE_TABLE_PARSE, "there is more after the end");
	refuse_bytes("\0", 1, CAUSE_TABLE_PARSE, "line 1");
	/* deep nesting must not use up the stack */
	memset(large, '[', sizeof(large));
	refuse_bytes(large, sizeof(large), CAUSE_TABLE_PARSE, "no JSON");
	refuse_bytes(large, HCCLD_RANK_TABLE_BYTES_MAX, CAUSE_TABLE_PARSE, "less than 64 MiB");
}

TEST(values_of_version_1)
{
	refuse("{}", CAUSE_TABLE_ITEM, "version is missing");
	refuse("{'version':'3.0'}", CAUSE_TABLE_VALUE, "version is \"3.0\"");
	refuse("{'version':1.0}", CAUSE_TABLE_VALUE, "version is no text");
	refuse("{'version':'1.0'}", CAUSE_TABLE_ITEM, "status is missing");
	refuse("{'version':'1.0','status':'initializing'}", CAUSE_TABLE_VALUE, "has not finished");
	refuse("{'version':'1.0','status':'done'}", CAUSE_TABLE_VALUE, "status is \"done\"");
	refuse("{" HEAD "'server_list':[]}", CAUSE_TABLE_ITEM, "server_count is missing");
	refuse("{" HEAD "'server_count':'1'}", CAUSE_TABLE_ITEM, "server_list is missing");
	refuse("{" HEAD "'server_count':'1','server_list':{}}", CAUSE_TABLE_VALUE, "server_list is no list");
	refuse("{" HEAD "'server_count':'1','server_list':[]}", CAUSE_TABLE_VALUE, "server_list has 0 entries");
	refuse("{" HEAD "'server_count':'one','server_list':[1]}", CAUSE_TABLE_VALUE, "server_count is \"one\"");
	refuse("{" HEAD "'server_count':1,'server_list':[1]}", CAUSE_TABLE_VALUE, "server_count is no text");
	refuse("{" HEAD "'server_count':'2','server_list':[1]}", CAUSE_TABLE_VALUE, "server_count is 2, but server_list has 1");
	refuse("{" HEAD "'server_count':'1','server_list':[{'device':[{}]}]}", CAUSE_TABLE_ITEM, "server_list[0].server_id is missing");
	refuse("{" HEAD "'server_count':'1','server_list':[{'server_id':'a','device':[{}]}]}", CAUSE_TABLE_ITEM,
	       "server_list[0].device[0].device_id is missing");
	refuse("{" HEAD "'server_count':'1','server_list':[{'server_id':'a','host_ip':'x','device':[{}]}]}", CAUSE_TABLE_VALUE,
	       "server_list[0].host_ip is \"x\"");
	refuse(ONE("{'device_id':'0'}"), CAUSE_TABLE_ITEM, "server_list[0].device[0].rank_id is missing");
	refuse(ONE(DEVICE("64", "0")), CAUSE_TABLE_VALUE, "device_id is \"64\"; expected a whole number from 0 to 63");
	refuse(ONE(DEVICE("-1", "0")), CAUSE_TABLE_VALUE, "device_id is \"-1\"");
	refuse(ONE(DEVICE("0", "99999999999")), CAUSE_TABLE_VALUE, "rank_id is \"99999999999\"");
	refuse(ONE(DEVICE("0", "1")), CAUSE_TABLE_VALUE, "device[0].rank_id is 1; the table has 1 ranks");
	refuse(ONE(DEVICE("0", "0") "," DEVICE("1", "0")), CAUSE_TABLE_VALUE, "device[1].rank_id is 0, as that of another device");
	refuse(ONE(DEVICE("0", "0") "," DEVICE("0", "1")), CAUSE_TABLE_VALUE, "device_id 0 of server \"node\" is there twice");
	refuse(ONE("{'device_id':'0','device_id':'1','rank_id':'0'}"), CAUSE_TABLE_VALUE, "device[0].device_id is there twice");
	refuse(ONE("{'device_id':'0','rank_id':'0','device_ip':'1.2.3'}"), CAUSE_TABLE_VALUE, "device_ip is \"1.2.3\"");
	refuse(ONE("{'device_id':'0','rank_id':'0','device_port':'0'}"), CAUSE_TABLE_VALUE, "device_port is \"0\"");
	refuse(ONE("{'device_id':'0','rank_id':'0','host_port':'5'},{'device_id':'1','rank_id':'1','host_port':'5'}"), CAUSE_TABLE_VALUE,
	       "device[1].host_port is 5, as that of another");
	refuse(ONE("{'device_id':'0','rank_id':'0','device_ip':'1.2.3.4'},{'device_id':'1','rank_id':'1','device_ip':'1.2.3.4'}"),
	       CAUSE_TABLE_VALUE, "device_ip 1.2.3.4 is there twice");
}

#define SERVER(id, devices) "{'server_id':'" id "','device':[" devices "]}"
#define IP_DEVICE(id, rank, ip) "{'device_id':'" id "','rank_id':'" rank "','device_ip':'" ip "'}"
#define PODS(servers, pods) "{'status':'completed','version':'1.2','server_list':[" servers "],'super_pod_list':[" pods "]}"

TEST(several_servers)
{
	struct hccld_rank_table *table = parse("{" HEAD "'server_count':'2','server_list':[" SERVER("a", IP_DEVICE("0", "0", "1.1.1.1")) ","
					       SERVER("b", IP_DEVICE("0", "1", "1.1.1.2")) "]}");

	check_eq_uint(table->server_count, 2u);
	hccld_rank_table_free(table);
	refuse("{" HEAD "'server_count':'2','server_list':[" SERVER("a", DEVICE("0", "0")) "," SERVER("b", DEVICE("0", "1")) "]}",
	       CAUSE_TABLE_ITEM, "server_list[0].device[0].device_ip is missing");
	refuse("{" HEAD "'server_count':'2','server_list':[" SERVER("a", IP_DEVICE("0", "0", "1.1.1.1")) ","
	       SERVER("a", IP_DEVICE("1", "1", "1.1.1.2")) "]}", CAUSE_TABLE_VALUE, "server_list[1].server_id is \"a\", as that of another");
	refuse("{" HEAD "'server_count':'2','server_list':[" SERVER("a", IP_DEVICE("0", "0", "1.1.1.1") "," IP_DEVICE("1", "2", "1.1.1.2")) ","
	       SERVER("b", IP_DEVICE("0", "1", "1.1.1.3")) "]}", CAUSE_TABLE_VALUE, "the 2 ranks of server \"a\" are between 0 and 2");
	refuse(PODS(SERVER("a", DEVICE("0", "0")), "{'server_list':[{'server_id':'a'}]}"), CAUSE_TABLE_ITEM,
	       "super_pod_list[0].super_pod_id is missing");
	refuse(PODS(SERVER("a", DEVICE("0", "0")), "{'super_pod_id':'0','server_list':[{'server_id':'b'}]}"), CAUSE_TABLE_VALUE,
	       "super_pod_list[0].server_list[0].server_id is \"b\", which server_list does not have");
	refuse(PODS(SERVER("a", DEVICE("0", "0")), "{'super_pod_id':'0','server_list':[{'server_id':'a'},{'server_id':'a'}]}"),
	       CAUSE_TABLE_VALUE, "which super_pod_list has already");
	refuse(PODS(SERVER("a", DEVICE("0", "0")) "," SERVER("b", DEVICE("0", "1")), "{'super_pod_id':'0','server_list':[{'server_id':'a'}]}"),
	       CAUSE_TABLE_ITEM, "does not have server \"b\"");
}

#define TWO(ranks) "{'version':'2.0','rank_count':1,'rank_list':[" ranks "]}"
#define LAYER(n, type) "{'net_layer':" n ",'net_instance_id':'s','net_type':'" type "'}"
#define RANK(layers) "{'rank_id':0,'local_id':0,'device_id':0,'level_list':[" layers "]}"

TEST(values_of_version_2)
{
	refuse("{'version':'2.0'}", CAUSE_TABLE_ITEM, "rank_count is missing");
	refuse("{'version':'2.0','rank_count':'1'}", CAUSE_TABLE_VALUE, "rank_count is no number");
	refuse("{'version':'2.0','rank_count':0}", CAUSE_TABLE_VALUE, "rank_count is 0");
	refuse("{'version':'2.0','rank_count':1.5}", CAUSE_TABLE_VALUE, "rank_count is 1.5");
	refuse("{'version':'2.0','rank_count':1e300}", CAUSE_TABLE_VALUE, "rank_count is 1e+300");
	refuse("{'version':'2.0','rank_count':2,'rank_list':[{}]}", CAUSE_TABLE_VALUE, "rank_count is 2, but rank_list has 1");
	refuse(TWO("7"), CAUSE_TABLE_VALUE, "rank_list[0] is no object");
	refuse(TWO("{'rank_id':0}"), CAUSE_TABLE_ITEM, "rank_list[0].local_id is missing");
	refuse(TWO("{'rank_id':0,'local_id':65}"), CAUSE_TABLE_VALUE, "local_id is 65");
	refuse(TWO("{'rank_id':0,'local_id':0,'device_id':64}"), CAUSE_TABLE_VALUE, "device_id is 64");
	refuse(TWO("{'rank_id':0,'local_id':0,'device_id':0}"), CAUSE_TABLE_ITEM, "level_list is missing");
	refuse(TWO(RANK("")), CAUSE_TABLE_VALUE, "level_list has 0 entries");
	refuse(TWO(RANK(LAYER("1", "CLOS"))), CAUSE_TABLE_VALUE, "level_list[0].net_layer is 1; expected layers that grow, from 0");
	refuse(TWO(RANK(LAYER("0", "TOPO_FILE_DESC") "," LAYER("0", "CLOS"))), CAUSE_TABLE_VALUE, "level_list[1].net_layer is 0");
	refuse(TWO(RANK(LAYER("0", "CLOS"))), CAUSE_TABLE_VALUE, "net_type is \"CLOS\"; expected \"TOPO_FILE_DESC\"");
	refuse(TWO(RANK(LAYER("0", "TOPO_FILE_DESC") "," LAYER("1", "MESH"))), CAUSE_TABLE_VALUE,
	       "expected \"CLOS\" or \"TOPO_FILE_DESC\"");
	refuse(TWO(RANK("{'net_layer':0,'net_instance_id':'s','net_type':'TOPO_FILE_DESC','rank_addr_list':[{'addr_type':'MAC','addr':'x'}]}")),
	       CAUSE_TABLE_VALUE, "rank_addr_list[0].addr_type is \"MAC\"; expected \"EID\" or \"IPV4\" or \"IPV6\"");
	refuse(TWO(RANK("{'net_layer':0,'net_instance_id':'s','net_type':'TOPO_FILE_DESC','rank_addr_list':[{'addr_type':'EID','addr':'x','ports':[1]}]}")),
	       CAUSE_TABLE_VALUE, "rank_addr_list[0].ports has an entry that is no text");
	refuse("{'version':'2.0','rank_count':1,'rank_list':[{'rank_id':1,'local_id':0,'device_id':0,'level_list':[" LAYER("0", "TOPO_FILE_DESC") "]}]}",
	       CAUSE_TABLE_VALUE, "rank_list[0].rank_id is 1; the table has 1 ranks");
}

#define GROUP(fields) "{'status':'completed','group_count':'1','group_list':[{" fields "}]}"
#define INSTANCE "{'server_id':'a','devices':[{'device_id':'0'}]}"

TEST(values_with_group_list)
{
	refuse("{'status':'completed','group_list':[{}]}", CAUSE_TABLE_ITEM, "group_count is missing");
	refuse("{'status':'completed','group_count':'2','group_list':[{}]}", CAUSE_TABLE_VALUE, "group_count is 2, but there are 1");
	refuse(GROUP(""), CAUSE_TABLE_VALUE, "no rank");
	refuse(GROUP("'instance_count':'2','device_count':'1','instance_list':[" INSTANCE "]"), CAUSE_TABLE_VALUE,
	       "group_list[0].instance_count is 2, but there are 1");
	refuse(GROUP("'instance_count':'1','device_count':'3','instance_list':[" INSTANCE "]"), CAUSE_TABLE_VALUE,
	       "group_list[0].device_count is 3, but there are 1 devices");
	refuse(GROUP("'instance_count':'1','device_count':'1','instance_list':[{'devices':[{'device_id':'0'}]}]"), CAUSE_TABLE_ITEM,
	       "group_list[0].instance_list[0].server_id is missing");
	refuse(GROUP("'instance_count':'2','device_count':'2','instance_list':[" INSTANCE "," INSTANCE "]"), CAUSE_TABLE_VALUE,
	       "device_id 0 of server \"a\" is there twice");
}

TEST(too_many_ranks)
{
	static char text[1 << 20];
	size_t length = (size_t)snprintf(text, sizeof(text), "{'version':'2.0','rank_count':4097,'rank_list':[");

	for (int i = 0; i < 4097; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s{}", i ? "," : "");
	snprintf(text + length, sizeof(text) - length, "]}");
	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	refuse_bytes(text, strlen(text), CAUSE_UNBUILT, "the table has 4097 ranks");
}
