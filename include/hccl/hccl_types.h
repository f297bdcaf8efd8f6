/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result codes, data types, reduce operations, communicator configuration, root information and
 * send/receive items. Names, values and layouts are those of CANN 9.0, with the types that 9.1
 * and 9.2 added. Valid C11 and C++11; no function of the library is declared here.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
/* Size of HcclRootInfo. */
static const uint32_t HCCL_ROOT_INFO_BYTES = 4108U;
/* Buffer for a communicator name, with its NUL. */
static const uint32_t COMM_NAME_MAX_LENGTH = 128U;
static const uint32_t BUFFER_NAME_MAX_LENGTH = 128U;
static const uint32_t UDI_MAX_LENGTH = 128U;
static const uint32_t HCCL_COMM_ALGO_MAX_LENGTH = 1600U;
static const uint32_t HCCL_COMM_RETRY_ENABLE_MAX_LENGTH = 50U;
static const uint32_t HCCL_COMM_RETRY_PARAMS_MAX_LENGTH = 128U;
/* HcclCommConfig.reserved: size_t size, uint32_t magic word, uint32_t version, uint64_t 0. */
static const uint32_t HCCL_COMM_CONFIG_INFO_BYTES = 24U;
static const uint32_t HCCL_COMM_CONFIG_MAGIC_WORD = 0xf0f0f0f0U;
static const uint32_t HCCL_COMM_CONFIG_VERSION = 10U;
/* MB. */
static const uint32_t HCCL_COMM_DEFAULT_BUFFSIZE = 200U;
static const uint32_t HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET = 0xffffffffU;
static const uint32_t HCCL_COMM_DEFAULT_DETERMINISTIC = 0U;
static const uint32_t HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET = 0xffffffffU;
static const uint32_t HCCL_COMM_DEFAULT_OP_EXPANSION_MODE = 0U;
static const uint32_t HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET = 0xffffffffU;
static const uint32_t HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET = 0xffffffffU;
/* 0xffffffff in the int32_t field hcclExecTimeOut. */
static const int32_t HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET = -1;
static const uint32_t HCCL_COMM_QOS_CONFIG_NOT_SET = 0xffffffffU;
static const uint32_t HCCL_COMM_SQ_DEPTH_CONFIG_NOT_SET = 0xffffffffU;
/* GB of address range per rank. */
static const uint64_t HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE = 16ULL;
#else
#define HCCL_ROOT_INFO_BYTES 4108U
#define COMM_NAME_MAX_LENGTH 128U
#define BUFFER_NAME_MAX_LENGTH 128U
#define UDI_MAX_LENGTH 128U
#define HCCL_COMM_ALGO_MAX_LENGTH 1600U
#define HCCL_COMM_RETRY_ENABLE_MAX_LENGTH 50U
#define HCCL_COMM_RETRY_PARAMS_MAX_LENGTH 128U
#define HCCL_COMM_CONFIG_INFO_BYTES 24U
#define HCCL_COMM_CONFIG_MAGIC_WORD 0xf0f0f0f0U
#define HCCL_COMM_CONFIG_VERSION 10U
#define HCCL_COMM_DEFAULT_BUFFSIZE 200U
#define HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET 0xffffffffU
#define HCCL_COMM_DEFAULT_DETERMINISTIC 0U
#define HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET 0xffffffffU
#define HCCL_COMM_DEFAULT_OP_EXPANSION_MODE 0U
#define HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET 0xffffffffU
#define HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET 0xffffffffU
#define HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET (-1)
#define HCCL_COMM_QOS_CONFIG_NOT_SET 0xffffffffU
#define HCCL_COMM_SQ_DEPTH_CONFIG_NOT_SET 0xffffffffU
#define HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE 16ULL
#endif

/* A communicator as one rank sees it. Opaque; owned by the library until HcclCommDestroy. */
typedef void *HcclComm;
typedef void *HcclConn;
/* A symmetric memory window, see HcclCommSymWinRegister. */
typedef void *HcclCommSymWindow;

/* What every Hccl function returns; HcclGetErrorString names it, aclGetRecentErrMsg says why. */
typedef enum HcclResult {
	HCCL_SUCCESS = 0,
	HCCL_E_PARA = 1,	/* an argument has a value that is not allowed */
	HCCL_E_PTR = 2,	/* an argument is NULL */
	HCCL_E_MEMORY = 3,
	HCCL_E_INTERNAL = 4,
	HCCL_E_NOT_SUPPORT = 5,
	HCCL_E_NOT_FOUND = 6,
	HCCL_E_UNAVAIL = 7,	/* a resource is exhausted or in use */
	HCCL_E_SYSCALL = 8,
	HCCL_E_TIMEOUT = 9,
	HCCL_E_OPEN_FILE_FAILURE = 10,
	HCCL_E_TCP_CONNECT = 11,
	HCCL_E_ROCE_CONNECT = 12,
	HCCL_E_TCP_TRANSFER = 13,
	HCCL_E_ROCE_TRANSFER = 14,
	HCCL_E_RUNTIME = 15,
	HCCL_E_DRV = 16,
	HCCL_E_PROFILING = 17,
	HCCL_E_CCE = 18,
	HCCL_E_NETWORK = 19,
	HCCL_E_AGAIN = 20,	/* not now; call again */
	HCCL_E_REMOTE = 21,	/* a peer died or reported an error */
	HCCL_E_SUSPENDING = 22,	/* the communicator is suspended */
	HCCL_E_OPRETRY_FAIL = 23,	/* an operation could not be retried */
	HCCL_E_OOM = 24,	/* out of device memory */
	HCCL_E_IN_STATUS = 1041,
	HCCL_E_RESERVED = 1042,
} HcclResult;

typedef enum HcclReduceOp {
	HCCL_REDUCE_SUM = 0,
	HCCL_REDUCE_PROD = 1,
	HCCL_REDUCE_MAX = 2,
	HCCL_REDUCE_MIN = 3,
	HCCL_REDUCE_RESERVED = 255,
} HcclReduceOp;

/* Type of the elements that counts count. Sizes in bytes: those of the names; HIF8, FP8*: 1. */
typedef enum HcclDataType {
	HCCL_DATA_TYPE_INT8 = 0,
	HCCL_DATA_TYPE_INT16 = 1,
	HCCL_DATA_TYPE_INT32 = 2,
	HCCL_DATA_TYPE_FP16 = 3,
	HCCL_DATA_TYPE_FP32 = 4,
	HCCL_DATA_TYPE_INT64 = 5,
	HCCL_DATA_TYPE_UINT64 = 6,
	HCCL_DATA_TYPE_UINT8 = 7,
	HCCL_DATA_TYPE_UINT16 = 8,
	HCCL_DATA_TYPE_UINT32 = 9,
	HCCL_DATA_TYPE_FP64 = 10,
	HCCL_DATA_TYPE_BFP16 = 11,
	HCCL_DATA_TYPE_INT128 = 12,
	HCCL_DATA_TYPE_HIF8 = 14,
	HCCL_DATA_TYPE_FP8E4M3 = 15,
	HCCL_DATA_TYPE_FP8E5M2 = 16,
	HCCL_DATA_TYPE_FP8E8M0 = 17,
	HCCL_DATA_TYPE_RESERVED = 255,
} HcclDataType;

/* Process-wide settings of HcclSetConfig. */
typedef enum HcclConfig {
	HCCL_DETERMINISTIC = 0,
	HCCL_CONFIG_RESERVED = 1,
} HcclConfig;

typedef union HcclConfigValue {
	int32_t value;	/* HCCL_DETERMINISTIC: 0 off, 1 on, 2 strict */
} HcclConfigValue;

/* Identifies a communicator that is being created; bytes to hand to every rank. */
typedef struct HcclRootInfo {
	char internal[HCCL_ROOT_INFO_BYTES];
} HcclRootInfo;

/*
 * Settings of one communicator; start with HcclCommConfigInit. The library reads as many bytes as
 * the size in `reserved` says, so programs built with older or newer headers work.
 */
typedef struct HcclCommConfig {
	char reserved[HCCL_COMM_CONFIG_INFO_BYTES];	/* HcclCommConfigInit writes it */
	uint32_t hcclBufferSize;		/* MB per buffer; overrides HCCL_BUFFSIZE */
	uint32_t hcclDeterministic;		/* 0 off, 1 on, 2 strict */
	char hcclCommName[COMM_NAME_MAX_LENGTH];	/* NUL-terminated; empty: generated */
	char hcclUdi[UDI_MAX_LENGTH];		/* free text for logs and error messages */
	uint32_t hcclOpExpansionMode;		/* 0: the library chooses */
	uint32_t hcclRdmaTrafficClass;		/* 0 to 255, a multiple of 4 */
	uint32_t hcclRdmaServiceLevel;		/* 0 to 7 */
	uint32_t hcclWorldRankID;		/* for logs */
	uint64_t hcclJobID;			/* for logs */
	uint8_t aclGraphZeroCopyEnable;		/* 0 or 1 */
	int32_t hcclExecTimeOut;		/* seconds; overrides HCCL_EXEC_TIMEOUT */
	/* As the environment's HCCL_ALGO, HCCL_OP_RETRY_ENABLE and HCCL_OP_RETRY_PARAMS. */
	char hcclAlgo[HCCL_COMM_ALGO_MAX_LENGTH];
	char hcclRetryEnable[HCCL_COMM_RETRY_ENABLE_MAX_LENGTH];
	char hcclRetryParams[HCCL_COMM_RETRY_PARAMS_MAX_LENGTH];
	/* Communicators of a process with the same name here share one buffer. */
	char hcclBufferName[BUFFER_NAME_MAX_LENGTH];
	uint32_t hcclQos;			/* 0 to 7, higher is better: share of the daemon's copies (hccld(7)) */
	uint64_t hcclSymWinMaxMemSizePerRank;	/* GB of symmetric address range per rank */
} HcclCommConfig;

/* HcclGetCommConfigCapability() > VALUE tells that the library honours the setting. */
typedef enum HcclCommConfigCapability {
	HCCL_COMM_CONFIG_BUFFER_SIZE = 0,
	HCCL_COMM_CONFIG_DETERMINISTIC = 1,
	HCCL_COMM_CONFIG_COMM_NAME = 2,
	HCCL_COMM_CONFIG_OP_EXPANSION_MODE = 3,
	HCCL_COMM_CONFIG_SUPPORT_INIT_BY_ENV = 4,
	HCCL_COMM_CONFIG_WORLD_RANKID = 5,
	HCCL_COMM_CONFIG_JOBID = 6,
	HCCL_COMM_CONFIG_ACLGRAPH_ZEROCOPY_ENABLE = 7,
	HCCL_COMM_CONFIG_EXEC_TIMEOUT = 8,
	HCCL_COMM_CONFIG_ALGO = 9,
	HCCL_COMM_CONFIG_RETRY = 10,
	HCCL_COMM_CONFIG_BUFFER_NAME = 11,
	HCCL_COMM_CONFIG_RESERVED = 12,
} HcclCommConfigCapability;

typedef enum HcclSendRecvType {
	HCCL_SEND = 0,
	HCCL_RECV = 1,
	HCCL_SEND_RECV_RESERVED = 2,
} HcclSendRecvType;

/* One item of HcclBatchSendRecv. */
typedef struct HcclSendRecvItem {
	HcclSendRecvType sendRecvType;
	void *buf;		/* device memory, count elements */
	uint64_t count;		/* elements of dataType; 0: the item does nothing */
	HcclDataType dataType;
	uint32_t remoteRank;	/* destination of a send, source of a receive */
} HcclSendRecvItem;

typedef enum HcclCMDType {
	HCCL_CMD_INVALID = 0,
	HCCL_CMD_BROADCAST = 1,
	HCCL_CMD_ALLREDUCE = 2,
	HCCL_CMD_REDUCE = 3,
	HCCL_CMD_SEND = 4,
	HCCL_CMD_RECEIVE = 5,
	HCCL_CMD_ALLGATHER = 6,
	HCCL_CMD_REDUCE_SCATTER = 7,
	HCCL_CMD_ALLTOALLV = 8,
	HCCL_CMD_ALLTOALLVC = 9,
	HCCL_CMD_ALLTOALL = 10,
	HCCL_CMD_GATHER = 11,
	HCCL_CMD_SCATTER = 12,
	HCCL_CMD_BATCH_SEND_RECV = 13,
	HCCL_CMD_BATCH_PUT = 14,
	HCCL_CMD_BATCH_GET = 15,
	HCCL_CMD_ALLGATHER_V = 16,
	HCCL_CMD_REDUCE_SCATTER_V = 17,
	HCCL_CMD_BATCH_WRITE = 18,
	HCCL_CMD_HALF_ALLTOALLV = 20,
	HCCL_CMD_ALL = 21,
	HCCL_CMD_FINALIZE = 100,
	HCCL_CMD_INTER_GROUP_SYNC = 101,
	HCCL_CMD_INIT = 102,
	HCCL_CMD_BARRIER = 103,
	HCCL_CMD_MAX = 104,
} HcclCMDType;

/* Since 9.1. */
typedef enum HcclCommStatus {
	HCCL_COMM_STATUS_READY = 0,
	HCCL_COMM_STATUS_SUSPENDING = 1,
	HCCL_COMM_STATUS_INVALID = 254,
	HCCL_COMM_STATUS_RESERVED = 255,
} HcclCommStatus;

/* Since 9.2: when a callback of HcclCommRegCommStateCallback runs. */
typedef enum HcclCommStatePhase {
	HCCL_COMM_STATE_PHASE_INVALID = -1,
	HCCL_COMM_STATE_PHASE_DESTROY_PRE = 0,
	HCCL_COMM_STATE_PHASE_DESTROY_POST = 1,
	HCCL_COMM_STATE_PHASE_RESUME_PRE = 2,
	HCCL_COMM_STATE_PHASE_RESUME_POST = 3,
} HcclCommStatePhase;

#ifdef __cplusplus
}
#endif
